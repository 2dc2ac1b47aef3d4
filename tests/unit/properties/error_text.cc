// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// error_text.cc -- the texts of error numbers; built with the strerror_r() of glibc and with
// the one of POSIX

#include "base/error_text.hh"

#include <cerrno>
#include <cstdio>

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
