// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// call.hh -- functions of librpma as commands: call(rpma_ep_listen, {"addr", "port"})
//
// The types of the parameters determine the arguments. The command has the numbers of handles
// and of pointers to handles. The table has a key for each other parameter: "key", or "key=3"
// for a number with the default 3. The reply has the outputs of a function under their keys,
// even if the function fails.

#pragma once

#include "peer.hh"

using Keys = std::vector<std::string>;
using Key = Keys::const_iterator;

template <class Type> class Input {
  public:
    explicit Input(Type value) : value_(value) {}
    Type value() { return value_; }
    void reply_output() const {}

  private:
    Type value_;
};

inline uint64_t number_with_default(const Args &args, const std::string &key) {
    const size_t equals = key.find('=');
    if (equals == std::string::npos || args.has(key.substr(0, equals)))
        return args.number(key.substr(0, equals));
    return std::stoull(key.substr(equals + 1));
}

template <class Type> struct Parameter : Input<Type> {
    Parameter(const Args &args, Key &key)
        : Input<Type>(static_cast<Type>(number_with_default(args, *key++))) {}
};

template <> struct Parameter<const char *> : Input<const char *> {
    Parameter(const Args &args, Key &key) : Input(args.text(*key++).c_str()) {}
};

template <Handle Object> struct Parameter<Object *> : Input<Object *> {
    Parameter(const Args &args, Key &) : Input<Object *>(object_of<Object>(args)) {}
};

template <Handle Object> struct Parameter<const Object *> : Parameter<Object *> {
    using Parameter<Object *>::Parameter;
};

template <Handle Object> struct Parameter<Object **> : Input<Object **> {
    Parameter(const Args &args, Key &) : Input<Object **>(&handle_of<Object>(args)) {}
};

template <> struct Parameter<const rpma_conn_cfg *> : Input<const rpma_conn_cfg *> {
    Parameter(const Args &args, Key &) : Input(cfg_of(args)) {}
};

// Private data to send; NULL if it is empty.
template <> class Parameter<const rpma_conn_private_data *> {
  public:
    Parameter(const Args &args, Key &key) : bytes_(args.bytes(*key++)), pdata_() {}
    const rpma_conn_private_data *value() {
        pdata_ = private_data(bytes_);
        return bytes_.empty() ? nullptr : &pdata_;
    }
    void reply_output() const {}

  private:
    std::vector<unsigned char> bytes_;
    rpma_conn_private_data pdata_;
};

// An output parameter.
template <class Output> class Parameter<Output *> {
  public:
    Parameter(const Args &, Key &key) : key_(*key++), output_() {
        if constexpr (std::is_integral_v<Output>)
            output_ = static_cast<Output>(~0ULL); // a value that no function stores
    }
    Output *value() { return &output_; }
    void reply_output() const { reply(key_, output_); }

  private:
    std::string key_;
    Output output_;
};

template <class... Types> Command call(int function(Types...), const Keys &keys = {}) {
    return [=](const Args &args) {
        Key key = keys.begin();
        std::tuple<Parameter<Types>...> parameters{Parameter<Types>(args, key)...};
        const ScopeExit report{
            [&] { std::apply([](auto &...each) { (each.reply_output(), ...); }, parameters); }};
        must(std::apply([=](auto &...each) { return function(each.value()...); }, parameters));
    };
}
