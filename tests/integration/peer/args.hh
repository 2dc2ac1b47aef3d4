// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// args.hh -- a command, which is a line with a verb and key=value words; and the reply to it

#pragma once

#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

class Args {
  public:
    explicit Args(const std::string &line);

    const std::string &verb() const { return verb_; }
    bool has(const std::string &key) const { return values_.contains(key); }
    // The value of a key. Without the key and a default value the script is wrong: the process
    // ends with a message.
    const std::string &text(const std::string &key) const;
    std::string text(const std::string &key, const std::string &default_value) const;
    template <class Number = uint64_t> Number number(const std::string &key) const {
        return static_cast<Number>(parse(key, text(key)));
    }
    template <class Number = uint64_t>
    Number number(const std::string &key, std::type_identity_t<Number> default_value) const {
        return has(key) ? number<Number>(key) : default_value;
    }
    bool is(const std::string &key) const { return number<bool>(key, false); }
    // The element of an array at the index that the key has; without the key, element 0.
    template <class Element, size_t size>
    Element &in(Element (&array)[size], const std::string &key) const {
        return array[below(size, key)];
    }
    size_t below(size_t limit, const std::string &key) const;
    // The bytes of a hexadecimal value; none without the key.
    std::vector<unsigned char> bytes(const std::string &key) const;
    // Ends the process, because the script has an invalid command.
    [[noreturn]] void refuse(const std::string &why) const;

  private:
    uint64_t parse(const std::string &key, const std::string &digits, int base = 10) const;

    std::string verb_;
    std::map<std::string, std::string> values_;
};

// The reply of the running command, to which commands add words.
extern std::ostringstream answer;

template <class Value> void reply(const std::string &key, const Value &value) {
    answer << ' ' << key << '=' << value;
}
void reply_bytes(const std::string &key, const void *bytes, size_t count);

// Completes the reply at the end of a scope, even if the command fails.
template <class Function> struct ScopeExit {
    Function complete;
    ~ScopeExit() { complete(); }
};
template <class Function> ScopeExit(Function) -> ScopeExit<Function>;
