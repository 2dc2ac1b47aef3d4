// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// format.hh -- the texts of log lines, for a sixth of the instructions of vsnprintf()
//
// A program that posts to a full queue logs a line for each refused post.

#pragma once

#include <cstdarg>
#include <cstddef>

namespace rpma {

// Writes a text and its terminator to size bytes, truncated if it does not fit, and returns the
// position of the terminator. The conversions are %s, %d, %u and %x, with l, ll, z or t.
[[gnu::format(printf, 3, 0)]] char *vformat(char *to, std::size_t size, const char *format,
                                            va_list values);
[[gnu::format(printf, 3, 4)]] char *format(char *to, std::size_t size, const char *format, ...);

} // namespace rpma
