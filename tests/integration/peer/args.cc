// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// args.cc -- parses commands and encodes replies

#include "args.hh"

#include <charconv>
#include <cstdlib>
#include <iomanip>
#include <iostream>

std::ostringstream answer;

Args::Args(const std::string &line) {
    std::istringstream words(line);
    words >> verb_;
    for (std::string word; words >> word;) {
        const size_t equals = word.find('=');
        if (equals == std::string::npos)
            refuse("'" + word + "' is not key=value");
        values_[word.substr(0, equals)] = word.substr(equals + 1);
    }
}

const std::string &Args::text(const std::string &key) const {
    const auto found = values_.find(key);
    if (found == values_.end())
        refuse(key + "= is missing");
    return found->second;
}

std::string Args::text(const std::string &key, const std::string &default_value) const {
    return has(key) ? text(key) : default_value;
}

uint64_t Args::parse(const std::string &key, const std::string &digits, int base) const {
    uint64_t number = 0;
    const char *end = digits.data() + digits.size();
    const auto [rest, error] = std::from_chars(digits.data(), end, number, base);
    if (error != std::errc() || rest != end)
        refuse(key + "=" + digits + " is not a number");
    return number;
}

size_t Args::below(size_t limit, const std::string &key) const {
    const size_t number = this->number<size_t>(key, 0);
    if (number >= limit)
        refuse(key + "=" + std::to_string(number) + " is too large");
    return number;
}

std::vector<unsigned char> Args::bytes(const std::string &key) const {
    const std::string digits = text(key, "");
    std::vector<unsigned char> bytes;
    for (size_t i = 0; i + 1 < digits.size(); i += 2)
        bytes.push_back(static_cast<unsigned char>(parse(key, digits.substr(i, 2), 16)));
    return bytes;
}

void Args::refuse(const std::string &why) const {
    std::cout << "bad " << verb_ << ": " << why << std::endl;
    exit(2);
}

void reply_bytes(const std::string &key, const void *bytes, size_t count) {
    std::ostringstream digits;
    digits << std::hex << std::setfill('0');
    for (size_t i = 0; i < count; i++)
        digits << std::setw(2) << unsigned{static_cast<const unsigned char *>(bytes)[i]};
    reply(key, digits.str());
}
