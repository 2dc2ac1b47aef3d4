// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// unit.h -- for every unit test: CMocka, the public header, the fakes, and the checks that all
// tests make.

#ifndef UNIT_H
#define UNIT_H 1

// CMocka needs these headers before its own.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define LIBRPMA_NO_DEPRECATED
#include "../fakes/fake.h"
#include "contract.h"
#include "librpma.h"
#include "logged.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

// ---- running -------------------------------------------------------------------------------

// A test that starts with reset fakes and ends with a check for leaks. The tests of an
// executable run in source order; the harness has their main().
#define TEST_THAT(function)                                               \
    static void function(void **state);                                   \
    __attribute__((constructor)) static void function##_is_a_test(void) { \
        unit_add(#function, function);                                    \
    }                                                                     \
    static void function(__attribute__((unused)) void **state)
void unit_add(const char *name, CMUnitTestFunction test);
// Runs all tests, or the named one; --list prints the names. For a main() that does more.
int unit_main(int argc, char **argv);

// Runs a list of tests; name is the name of the executable and of its notes of exercised rows.
#define UNIT_RUN(name, tests) unit_run(name, tests, LENGTH(tests))
int unit_run(const char *name, const struct CMUnitTest *tests, size_t count);
#define TEST(function) cmocka_unit_test_setup_teardown(function, unit_setup, unit_teardown)
int unit_setup(void **state);
int unit_teardown(void **state);

// Fails the test if a provider object, an event or a byte is left, or after a misuse. where
// describes the earlier steps.
void unit_nothing_left(const char *where);

// ---- expecting success ---------------------------------------------------------------------

// Expects that the call returns 0, logs no failure and does not clear errno.
#define MUST(call) MUST_OF(#call, call)
#define MUST_OF(name, call) unit_must((unit_begin(), (call)), name, __FILE__, __LINE__)
void unit_must(int ret, const char *text, const char *file, int line);
// For tests that also run over the original, which clears errno on success (decision E12):
// MUST() then ignores errno.
extern bool unit_ignores_errno;

// Expects these provider calls since the start of the last MUST() or EXPECT_ERROR().
#define EXPECT_CALLS(calls) unit_expect_calls(calls, __FILE__, __LINE__)
void unit_expect_calls(const char *calls, const char *file, int line);

// ---- expecting an error --------------------------------------------------------------------

// The expected failure of a call. A row of contract/errors.tsv is named by the function, the
// code and a part of its condition that no other row of that function and code contains.
struct expected_error {
    int code;
    const char *condition; // part of the row's condition
    const char *cause;     // a cause of the row: a term, or a provider call as "name()"
    int error; // errno of the failed provider call, which is returned and logged; 0: none
    const char *calls;         // provider calls made, separated by blanks; NULL: none
    const char *logs;          // text in the log line; without errno, it replaces the cause
    const char *before;        // the text with which the log line begins
    bool any_calls;            // the provider calls are not checked
    enum rpma_log_level level; // of the log line; 0: the usual level of the code
    int own_error;             // errno and the logged number if no provider call failed
};

// Expects that the call fails as described: this code, unchanged watched outputs, these
// provider calls, one log line that names the function and the cause. Notes the row as
// exercised.
#define EXPECT_ERROR(call, ...) EXPECT_ERROR_OF(#call, call, __VA_ARGS__)
// The same, but name is the function instead of the text of the call.
#define EXPECT_ERROR_OF(name, call, ...)                                                   \
    unit_expect_error((unit_begin(), (call)), name, &(struct expected_error){__VA_ARGS__}, \
                      __FILE__, __LINE__)
void unit_expect_error(int ret, const char *text, const struct expected_error *expected,
                       const char *file, int line);

// Remembers the bytes: the next EXPECT_ERROR() expects them unchanged.
#define WATCH(output) unit_watch(&(output), sizeof(output), #output)
void unit_watch(const void *output, size_t size, const char *name);

// Forgets calls and log lines; part of MUST and EXPECT_ERROR.
void unit_begin(void);

// Name of the called function in the text of a call.
const char *unit_function(const char *text);

// The number of open descriptors of this process.
unsigned unit_descriptors(void);

#endif // UNIT_H
