// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// visible.hh -- escapes text from outside in the output of a program, with the library's code

#ifndef RPMA_PROGRAMS_VISIBLE_HH
#define RPMA_PROGRAMS_VISIBLE_HH 1

#include "../../src/base/visible.hh"

#include <cstring>
#include <string>

// The whole text as one line that changes nothing on a terminal.
inline std::string one_line(const std::string &text) {
    std::string shown(4 * text.size() + 1, '\0'); // an escape has 4 characters at most
    rpma::make_visible(shown.data(), shown.size(), text.c_str(), false);
    shown.resize(std::strlen(shown.c_str()));
    return shown;
}

// The same for a value in front of other words, which it must not displace.
inline std::string shown(const std::string &value) {
    return rpma::Visible(value.c_str()).chars;
}

#endif
