// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// unit.c -- setup, teardown and checks of every unit test.

#include "error_codes.h"
#include "fixture.h"

#include <dlfcn.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_WATCHED = 8, ERRNO_BEFORE = EXDEV };

static struct {
    const unsigned char *output;
    unsigned char before[256];
    size_t size;
    const char *name;
} watched[MAX_WATCHED];
static unsigned watched_count;
static unsigned descriptors_before;

unsigned unit_descriptors(void) {
    struct pollfd
        all[100]; // not more than unit-script may open; much cheaper than /proc/self/fd
    unsigned count = 0;
    for (unsigned i = 0; i < LENGTH(all); i++)
        all[i] = (struct pollfd){.fd = (int)i};
    if (poll(all, LENGTH(all), 0) < 0)
        abort();
    for (unsigned i = 0; i < LENGTH(all); i++)
        count += !(all[i].revents & POLLNVAL);
    return count;
}

int unit_setup(void **state) {
    (void)state;
    memset(&w, 0, sizeof(w));
    fake_reset();
    logged_start();
    watched_count = 0;
    descriptors_before = unit_descriptors();
    return 0;
}

void unit_nothing_left(const char *where) {
    if (*fake_misuses())
        fail_msg("%s: misuse:\n%s", where, fake_misuses());
    if (*fake_leaks())
        fail_msg("%s:\n%s", where, fake_leaks());
}

int unit_teardown(void **state) {
    (void)state;
    fixture_reset();
    if (unit_descriptors() != descriptors_before)
        fail_msg("%u descriptors before the test, %u after it", descriptors_before,
                 unit_descriptors());
    return 0;
}

static const char *only; // the only test to run; NULL: run all, and note the rows

int unit_run(const char *name, const struct CMUnitTest *tests, size_t count) {
    fake_hook_allocator();
    cmocka_set_test_filter(only);
    if (!only)
        contract_open_notes(name);
    const int failed = _cmocka_run_group_tests(name, tests, count, NULL, NULL);
    if (!only)
        contract_close_notes();
    return failed;
}

static struct {
    struct CMUnitTest tests[64];
    size_t count;
} added;

void unit_add(const char *name, CMUnitTestFunction test) {
    if (added.count == LENGTH(added.tests))
        abort();
    added.tests[added.count++] =
        (struct CMUnitTest){name, test, unit_setup, unit_teardown, NULL};
}

int unit_main(int argc, char **argv) {
    unsetenv("RPMA_FLUSH");
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < added.count; i++)
            puts(added.tests[i].name);
        return 0;
    }
    only = argc == 2 ? argv[1] : NULL;
    return unit_run(program_invocation_short_name + strlen("unit-"), added.tests, added.count);
}

__attribute__((weak)) int main(int argc, char **argv) { // of executables without a main()
    return unit_main(argc, argv);
}

// A member that the next call leaves uninitialised on the stack is then neither 0 nor the value
// of an earlier call, so that the record of the fakes differs.
static __attribute__((noinline)) void spoil_stack(void) {
    unsigned char frame[8192];
    memset(frame, 0xa5, sizeof(frame));
    __asm__ volatile("" : : "r"(frame) : "memory");
}

void unit_begin(void) {
    fake_forget();
    logged_forget();
    spoil_stack();
    errno = ERRNO_BEFORE;
}

// The library never clears errno; after a failed provider call errno has the error of the
// provider.
static void check_errno(int got, int expected, const char *text, const char *file, int line) {
    if (expected ? got == expected : got != 0)
        return;
    print_error("%s leaves errno = %d (%s)\n", text, got, strerror(got));
    _fail(file, line);
}

bool unit_ignores_errno = false;

void unit_must(int ret, const char *text, const char *file, int line) {
    if (!unit_ignores_errno)
        check_errno(errno, 0, text, file, line);
    watched_count = 0;
    if (ret != 0) {
        print_error("%s = %s\n%s", text, contract_code_name(ret), logged_text());
        _fail(file, line);
    }
    if (logged_count(RPMA_LOG_LEVEL_ERROR) != 0) {
        print_error("%s succeeds and logs a failure:\n%s", text, logged_text());
        _fail(file, line);
    }
}

void unit_expect_calls(const char *calls, const char *file, int line) {
    if (strcmp(fake_calls(), calls) == 0)
        return;
    print_error("provider calls: \"%s\"\n      expected: \"%s\"\n", fake_calls(), calls);
    _fail(file, line);
}

const char *unit_function(const char *text) {
    static char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "("), text);
    return name;
}

void unit_watch(const void *output, size_t size, const char *name) {
    if (watched_count == MAX_WATCHED || size > sizeof(watched[0].before))
        fail_msg("too much to watch: %s", name);
    watched[watched_count].output = output;
    watched[watched_count].size = size;
    watched[watched_count].name = name;
    memcpy(watched[watched_count++].before, output, size);
}

static void check_outputs(const char *text, const char *file, int line) {
    for (unsigned i = 0; i < watched_count; i++) {
        if (memcmp(watched[i].output, watched[i].before, watched[i].size) == 0)
            continue;
        print_error("%s failed and wrote %s\n", text, watched[i].name);
        _fail(file, line);
    }
    watched_count = 0;
}

// Would-block results are not errors, and an unknown event or completion may be harmless.
static enum rpma_log_level level_of(int code) {
    static const int would_block[] = {
#define NOT_A_FAILURE(code, text, is_failure) (is_failure) ? 0 : (code),
        RPMA_ERROR_CODES(NOT_A_FAILURE)};
    for (size_t i = 0; i < LENGTH(would_block); i++)
        if (code == would_block[i])
            return RPMA_LOG_LEVEL_DEBUG;
    return code == RPMA_E_UNKNOWN ? RPMA_LOG_LEVEL_WARNING : RPMA_LOG_LEVEL_ERROR;
}

// Returns whether the message contains the text of an error number followed by "(number)".
static bool contains_error(const char *message) {
    for (const char *open = message; (open = strchr(open, '(')); open++) {
        const char *text = strerror(atoi(open + 1));
        const ptrdiff_t length = (ptrdiff_t)strlen(text);
        if (open - message > length && memcmp(open - 1 - length, text, (size_t)length) == 0)
            return true;
    }
    return false;
}

// Counts lines, except those of keys, which may follow a failure and are for debugging only.
static unsigned count_lines(enum rpma_log_level level) {
    static const char keys[] = "rkey=0x";
    unsigned lines = 0;
    for (unsigned i = 0; i < logged_count(level); i++)
        lines += strncmp(logged_line(level, i)->message, keys, strlen(keys)) != 0;
    return lines;
}

// An older library lacks rpma_err_last_failure().
static bool is_last_failure(const char *message, int error) {
    int last_error = -1;
    __typeof__(&rpma_err_last_failure) last_failure = NULL;
    *(void **)&last_failure = dlsym(RTLD_DEFAULT, "rpma_err_last_failure");
    return !last_failure ||
           (strcmp(last_failure(&last_error), message) == 0 && last_error == error);
}

// Expects one line that names the function and the cause.
static void check_log(const char *function, const struct expected_error *expected,
                      const char *file, int line) {
    const enum rpma_log_level level =
        expected->level ? expected->level : level_of(expected->code);
    // The line contains the provider call with its parameters: "call(…) failed: text
    // (number)".
    char call[128] = "", wanted[256];
    if (expected->error) {
        snprintf(call, sizeof(call), "%s%.*s(", expected->before ? expected->before : "",
                 (int)strcspn(expected->cause, "("), expected->cause);
        snprintf(wanted, sizeof(wanted), ") failed: %s (%d)", strerror(expected->error),
                 expected->error);
    } else {
        snprintf(call, sizeof(call), "%s", expected->before ? expected->before : "");
        snprintf(wanted, sizeof(wanted), "%s",
                 expected->logs ? expected->logs : expected->cause);
    }
    const struct logged_line *logged = logged_line(level, 0);
    const unsigned errors = logged_count(RPMA_LOG_LEVEL_ERROR);
    const char *wrong = NULL;
    if (errors != (level == RPMA_LOG_LEVEL_ERROR) || count_lines(level) != 1)
        wrong = "not one line";
    else if (strcmp(logged->function, function) != 0)
        wrong = "another function";
    else if (!strstr(logged->message, wanted) ||
             (expected->logs && !strstr(logged->message, expected->logs)) ||
             strncmp(logged->message, call, strlen(call)) != 0)
        wrong = "another cause";
    else if (!expected->error && !expected->own_error && contains_error(logged->message))
        wrong = "an unexpected error number";
    else if (logged->format[strlen(logged->format) - 1] != '\n')
        wrong = "no newline";
    else if (level_of(expected->code) != RPMA_LOG_LEVEL_DEBUG &&
             !is_last_failure(level <= RPMA_LOG_LEVEL_WARNING ? logged->message : "",
                              expected->error ? expected->error : expected->own_error))
        wrong = "another failure in rpma_err_last_failure()";
    if (!wrong)
        return;
    print_error("log of %s: %s, wanted one line with \"%s\":\n%s", function, wrong, wanted,
                logged_text());
    _fail(file, line);
}

void unit_expect_error(int ret, const char *text, const struct expected_error *expected,
                       const char *file, int line) {
    int error = expected->error ? expected->error : expected->own_error;
    if (error == 0 && (expected->code == RPMA_E_PROVIDER || expected->code == RPMA_E_AGAIN))
        error = ERRNO_BEFORE; // no error number, or no failure
    check_errno(errno, error, text, file, line);
    const char *function = unit_function(text);
    const char *why;
    const struct contract_row *row =
        contract_find(function, expected->code, expected->condition, &why);
    if (!row) {
        print_error("%s, %s, \"%s\": %s\n", function, contract_code_name(expected->code),
                    expected->condition, why);
        _fail(file, line);
    }
    if (ret != expected->code) {
        print_error("%s = %s instead of %s\n%s", text, contract_code_name(ret),
                    contract_code_name(expected->code), logged_text());
        _fail(file, line);
    }
    check_outputs(text, file, line);
    if (!expected->any_calls)
        unit_expect_calls(expected->calls ? expected->calls : "", file, line);
    check_log(function, expected, file, line);
    contract_exercised(row, expected->cause, expected->error);
}
