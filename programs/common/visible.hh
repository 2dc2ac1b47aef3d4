// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// visible.hh -- escapes untrusted text for output, with the library's code

#pragma once

#include "../../src/base/visible.hh"

#include <cstring>
#include <string>

// The whole text as one line without control characters.
inline std::string one_line(const std::string &text) {
    std::string shown(4 * text.size() + 1, '\0'); // an escape has 4 characters at most
    rpma::make_visible(shown.data(), shown.size(), text.c_str(), false);
    shown.resize(std::strlen(shown.c_str()));
    return shown;
}

// The same for a value within a line: truncated, so that the rest of the line remains visible.
inline std::string escaped(const std::string &value) {
    return rpma::Visible(value.c_str()).chars;
}
