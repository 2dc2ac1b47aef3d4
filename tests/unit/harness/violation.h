// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// violation.h -- tests of the harness: each is a test of a library that makes one mistake. It
// runs in a process of its own, where it must fail with a message that names the mistake.

#ifndef VIOLATION_H
#define VIOLATION_H 1

#include "unit.h"

struct violation {
    struct CMUnitTest test;
    const char *message; // part of what it must print
};

#define VIOLATION(name) static void name(__attribute__((unused)) void **state)
#define ROW(function, message) \
    { TEST(function), message }

void violations_are_reported(const struct violation *rows, size_t count);
// A test of a library without a mistake must pass.
void correct_calls_pass(CMUnitTestFunction function);

// Log a line of a failure, or forget it, as a library with a mistake does. They return ret.
int log_line(int ret); // of rpma_peer_delete(), with errno unchanged
int log_nothing(int ret);
// Writes a line as the library does; the format may have the text and the number of EIO.
void log_as(enum rpma_log_level level, const char *function, const char *format);

#endif // VIOLATION_H
