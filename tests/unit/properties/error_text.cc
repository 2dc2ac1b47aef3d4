// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// error_text.cc -- the texts of error numbers, also in a locale with translations; built with
// the strerror_r() of glibc and with the one of POSIX

#include "base/error_text.hh"

#include <cerrno>
#include <cstdio>

#if defined(_GNU_SOURCE) && __GLIBC_MINOR__ >= 32
// A locale with translations.
extern "C" char *strerror_r(int error, char *room, std::size_t size) noexcept {
    std::snprintf(room, size, "%s %d", error == EBUSY ? "translated" : "Unknown error", error);
    return room;
}
#endif

int main() {
    static constexpr struct {
        int error;
        const char *text;
    } cases[] = {{EBUSY, "Device or resource busy"}, {123456, "Unknown error 123456"}};
    for (const auto &[error, text] : cases) {
        const rpma::ErrorText got(error);
        if (std::strcmp(got.chars, text) != 0) {
            std::fprintf(stderr, "error_text: %d is \"%s\", expected \"%s\"\n", error,
                         got.chars, text);
            return 1;
        }
    }
    return 0;
}
