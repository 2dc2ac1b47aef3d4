// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// args.cc -- reading commands and answering them

#include "args.hh"

#include <cstdio>
#include <cstdlib>
#include <iomanip>

std::ostringstream answer;

Args::Args(const std::string &line) {
    std::istringstream words(line);
    words >> verb_;
    for (std::string word; words >> word;) {
        const size_t equals = word.find('=');
        if (equals == std::string::npos)
            bad_script(verb_ + ": '" + word + "' is no key=value");
        values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
}

const std::string &Args::text(const char *key) const {
    const auto found = values_.find(key);
    if (found == values_.end())
        bad_script(verb_ + ": " + key + "= is missing");
    return found->second;
}

std::string Args::text_or(const char *key, const char *otherwise) const {
    return has(key) ? text(key) : otherwise;
}

uint64_t Args::number(const char *key) const {
    const std::string &digits = text(key);
    char *end = nullptr;
    const uint64_t number = strtoull(digits.c_str(), &end, 0);
    if (digits.empty() || *end != '\0')
        bad_script(verb_ + ": " + key + "=" + digits + " is no number");
    return number;
}

uint64_t Args::number_or(const char *key, uint64_t otherwise) const {
    return has(key) ? number(key) : otherwise;
}

size_t Args::slot(const char *key, size_t limit) const {
    const uint64_t number = number_or(key, 0);
    if (number >= limit)
        bad_script(verb_ + ": " + key + "=" + std::to_string(number) + " is too large");
    return number;
}

std::vector<unsigned char> Args::bytes(const char *key) const {
    const std::string digits = text_or(key, "");
    std::vector<unsigned char> bytes;
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
        const std::string byte = digits.substr(i, 2);
        char *end = nullptr;
        bytes.push_back(static_cast<unsigned char>(strtoul(byte.c_str(), &end, 16)));
        if (*end != '\0')
            bad_script(verb_ + ": " + key + "= is not hexadecimal");
    }
    return bytes;
}

void bad_script(const std::string &what) {
    printf("bad %s\n", what.c_str());
    fflush(stdout);
    exit(2);
}

void reply_bytes(const char *key, const void *bytes, size_t count) {
    std::ostringstream digits;
    digits << std::hex << std::setfill('0');
    for (size_t i = 0; i < count; i++)
        digits << std::setw(2) << unsigned{static_cast<const unsigned char *>(bytes)[i]};
    reply(key, digits.str());
}
