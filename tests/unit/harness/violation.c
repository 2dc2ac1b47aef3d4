// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// violation.c -- see violation.h

#include "violation.h"

#include "logged.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int log_line(int ret) {
    (void)rpma_peer_delete(NULL);
    return ret;
}

int log_nothing(int ret) {
    logged_forget();
    return ret;
}

void log_as(enum rpma_log_level level, const char *function, const char *format) {
    logged_catch(level, __FILE__, __LINE__, function, format, strerror(EIO), EIO);
}

// Runs the test in a child. Returns whether it passed, and what it printed.
static bool passes(const struct CMUnitTest *test, char *text, size_t size) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        cmocka_set_test_filter(NULL);
        const int failed = _cmocka_run_group_tests("violation", test, 1, NULL, NULL);
        fflush(NULL);
        _exit(failed);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t got; (got = read(ends[0], text + used, size - 1 - used)) > 0;)
        used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 0;
}

void violations_are_reported(const struct violation *rows, size_t count) {
    static char text[1 << 16];
    for (size_t i = 0; i < count; i++) {
        if (passes(&rows[i].test, text, sizeof(text)))
            fail_msg("%s passes:\n%s", rows[i].test.name, text);
        if (!strstr(text, rows[i].message))
            fail_msg("%s prints this instead of \"%s\":\n%s", rows[i].test.name,
                     rows[i].message, text);
    }
}

void correct_calls_pass(CMUnitTestFunction function) {
    static char text[1 << 16];
    const struct CMUnitTest test = {"correct calls", function, unit_setup, unit_teardown, NULL};
    if (!passes(&test, text, sizeof(text)))
        fail_msg("%s", text);
}
