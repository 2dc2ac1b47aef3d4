// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// report.hh -- the report: a JSON document, from which the text is generated as well
//
// A result is an object: "is" is true, false, or null if no program can determine it. Unless
// "is" is true, "why" is the reason and "help" a remedy.

#pragma once

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

// Keeps the order of the members.
using Json = nlohmann::ordered_json;

// The exit statuses; rpma-info(1) and --help list them.
enum Status {
    STATUS_POSSIBLE = 0,      // everything requested is possible
    STATUS_FAILED = 1,        // the program itself failed
    STATUS_ARGUMENTS = 2,     // wrong arguments
    STATUS_NO_DEVICE = 3,     // no usable device
    STATUS_NO_MEMORY = 4,     // PATH cannot be used as memory
    STATUS_NOT_REGISTERED = 5 // PATH cannot be registered with any selected device
};

// Ends the program with this line and this exit status.
struct Refusal : std::runtime_error {
    Refusal(Status code, const std::string &line)
        : std::runtime_error(line), exit_status(code) {}
    Status exit_status;
};

inline Json yes() {
    return {{"is", true}};
}

inline Json no(std::string_view why, std::string_view help) {
    return {{"is", false}, {"why", why}, {"help", help}};
}

inline Json unknown(std::string_view why, std::string_view help) {
    return {{"is", nullptr}, {"why", why}, {"help", help}};
}

inline Json null_if_empty(const std::string &text) {
    return text.empty() ? Json() : Json(text);
}

inline bool is_yes(const Json &result) {
    return result.at("is") == true;
}

// The member as text: "" if it is missing or null.
inline std::string text_at(const Json &parent, const std::string &key) {
    const auto found = parent.find(key);
    return found == parent.end() || found->is_null() ? ""
           : found->is_string()                      ? found->get<std::string>()
                                                     : found->dump();
}

// The remedy if this user may not open a device file.
constexpr char GRANT_ACCESS[] = "let this user read and write it: chmod, or a rule of udev";
