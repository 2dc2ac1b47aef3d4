// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failure.hh -- the exception of rpma-perf, whose text is printed for the user

#pragma once

#include "visible.hh"
#include <librpma.hpp>

#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <stdexcept>

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

template <class... Values>
[[noreturn]] void fail(fmt::format_string<Values...> format, Values &&...values) {
    throw Failure(fmt::format(format, std::forward<Values>(values)...));
}

// Calls a function of the library. If it throws, fails with the text and the reason.
template <class Call> auto attempt(std::string_view text, Call call) {
    try {
        return call();
    } catch (const rpma::error &error) {
        fail("{}: {}", text, error.what());
    }
}

inline void require_ok(rpma::status status, std::string_view text) {
    if (status != rpma::status::ok)
        attempt(text, [status] { rpma::check(status); });
}

// Also checks the error flag of the stream, because earlier output may have failed.
inline void check_output() {
    if (fflush(stdout) != 0 || ferror(stdout) != 0)
        fail("cannot write to the standard output");
}

// Prints one line on standard error. Never throws: fmt::print() does if the write fails, and a
// full standard error must not end a server.
inline void print_error(std::string_view line) {
    (void)fputs(fmt::format("rpma-perf: {}\n", one_line(std::string(line))).c_str(), stderr);
}
