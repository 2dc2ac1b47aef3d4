// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// error_text.hh -- the text of an error number, by either strerror_r()

#pragma once

#include <cstring>

namespace rpma {

class ErrorText {
  public:
    explicit ErrorText(int error) : chars(text(strerror_r(error, room_, sizeof(room_)))) {}
    ErrorText(const ErrorText &) = delete;

  private:
    // The strerror_r() of glibc returns the text, which may stand elsewhere. That of POSIX,
    // which musl has, returns an error number and writes the text, or a part of it, to room_.
    const char *text(const char *found) { return found; }
    const char *text(int) { return room_; }

    char room_[128] = "";

  public:
    const char *const chars;
};

} // namespace rpma
