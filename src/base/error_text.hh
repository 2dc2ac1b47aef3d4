// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// error_text.hh -- the text of an error number, from either variant of strerror_r()

#pragma once

#include <cstring>

namespace rpma {

class ErrorText {
  public:
    explicit ErrorText(int error) : chars(text(strerror_r(error, room_, sizeof(room_)))) {}
    ErrorText(const ErrorText &) = delete;

  private:
    // The strerror_r() of glibc returns the text, which may be outside of room_. That of POSIX,
    // which musl has, returns an error number and writes the text, or its beginning, to room_.
    const char *text(const char *found) { return found; }
    const char *text(int) { return room_; }

    char room_[128] = "";

  public:
    const char *const chars;
};

} // namespace rpma
