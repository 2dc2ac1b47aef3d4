// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// args.hh -- one line of a script: a verb and key=value words; and the line that answers it

#ifndef PEER_ARGS_HH
#define PEER_ARGS_HH 1

#include <cstddef>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <vector>

class Args {
  public:
    explicit Args(const std::string &line);

    const std::string &verb() const { return verb_; }
    bool has(const char *key) const { return values_.contains(key); }
    // The value of a key. The process ends with a message if the script lacks a key that has no
    // default.
    const std::string &text(const char *key) const;
    std::string text_or(const char *key, const char *otherwise) const;
    uint64_t number(const char *key) const;
    uint64_t number_or(const char *key, uint64_t otherwise) const;
    bool is(const char *key) const { return number_or(key, 0) != 0; }
    // A number below limit; 0 without the key.
    size_t slot(const char *key, size_t limit) const;
    // Bytes given in hexadecimal; none without the key.
    std::vector<unsigned char> bytes(const char *key) const;

  private:
    std::string verb_;
    std::map<std::string, std::string, std::less<>> values_;
};

// Ends the process: the script asked for something that makes no sense.
[[noreturn]] void bad_script(const std::string &what);

// The answer of the running command, to which commands add words.
extern std::ostringstream answer;

template <class Value> void reply(const std::string &key, const Value &value) {
    answer << ' ' << key << '=' << value;
}
void reply_bytes(const char *key, const void *bytes, size_t count);

// Completes the answer at the end of a scope, also when the command fails.
template <class Function> struct AtEnd {
    Function complete;
    ~AtEnd() { complete(); }
};
template <class Function> AtEnd(Function) -> AtEnd<Function>;

#endif
