// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// report.hh -- the report: a JSON document, from which the text is made as well
//
// An answer is an object: "is" is true, false, or null where it cannot be known. Unless "is" is
// true, "why" has the reason and "help" a remedy.

#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

// Keeps the order of the members.
using json = nlohmann::ordered_json;

// The exit statuses; rpma-info(1) and --help list them.
enum status {
    STATUS_POSSIBLE = 0,      // everything asked for is possible
    STATUS_FAILED = 1,        // the program itself failed
    STATUS_ARGUMENTS = 2,     // wrong arguments
    STATUS_NO_DEVICE = 3,     // no usable device
    STATUS_NO_MEMORY = 4,     // PATH cannot be used as memory
    STATUS_NOT_REGISTERED = 5 // PATH registers with none of the chosen devices
};

// Ends the program with one line.
struct refusal : std::runtime_error {
    refusal(status with, const std::string &line) : std::runtime_error(line), ended(with) {}
    status ended;
};

inline json yes() {
    return {{"is", true}};
}

inline json no(std::string_view why, std::string_view help) {
    return {{"is", false}, {"why", why}, {"help", help}};
}

inline json unknown(std::string_view why, std::string_view help) {
    return {{"is", nullptr}, {"why", why}, {"help", help}};
}

inline json null_if_empty(const std::string &text) {
    return text.empty() ? json() : json(text);
}

inline bool is_yes(const json &answer) {
    return answer.at("is") == true;
}

// The member as text: "" when there is none, or it is null.
inline std::string text_at(const json &parent, const std::string &key) {
    const auto found = parent.find(key);
    return found == parent.end() || found->is_null() ? ""
           : found->is_string()                      ? found->get<std::string>()
                                                     : found->dump();
}

// The help where a file of the kernel is closed to this user.
constexpr char LET_USER[] = "let this user read and write it: chmod, or a rule of udev";
