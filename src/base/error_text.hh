// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// error_text.hh -- the text of an error number

#pragma once

#include <cstring>

namespace rpma {

class ErrorText {
  public:
    explicit ErrorText(int error) : chars(text(error)) {}
    ErrorText(const ErrorText &) = delete;

  private:
    // Log lines are English in every locale. Without glibc 2.32, and for an unknown number, the
    // C library may translate the text.
    const char *text(int error) {
#if defined(_GNU_SOURCE) && defined(__GLIBC__) && __GLIBC_MINOR__ >= 32
        if (const char *known = strerrordesc_np(error); known != nullptr)
            return known;
#endif
        return text_of(strerror_r(error, room_, sizeof(room_)));
    }
    // The strerror_r() of glibc returns the text, which may be outside of room_. That of POSIX,
    // which musl has, returns an error number and writes the text, or its beginning, to room_.
    const char *text_of(const char *found) {
        return found;
    }
    const char *text_of(int) {
        return room_;
    }

    char room_[128] = "";

  public:
    const char *const chars;
};

} // namespace rpma
