// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// visible.hh -- untrusted text in log lines: one line, limited length, no terminal controls

#pragma once

#include <cstddef>

namespace rpma {

// Copies text to out and escapes ("\n", "\x1b") control characters, line separators, changes of
// the writing direction and bytes that are not UTF-8. If out is too small, the copy ends with
// "...".
void make_visible(char *out, std::size_t size, const char *text, bool escapes_backslash);

// A name, a port or another untrusted value. Its length leaves space in the line for the
// reason.
struct Visible {
    char chars[128];

    explicit Visible(const char *text) { make_visible(chars, sizeof(chars), text, true); }
};

} // namespace rpma
