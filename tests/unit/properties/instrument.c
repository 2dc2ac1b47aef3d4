// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// instrument.c -- the harness and the sweeps report each violation by a library.
//
// A violation is a test of a library that makes one mistake. It runs in a process of its own,
// where it must fail with a message that names the mistake. misuses.c does this for the fakes.

#include "sweep.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char PEER_NEW[] = "rpma_peer_new(ibv_ctx, &peer)";

// ---- calls that make a mistake -------------------------------------------------------------

static int log_line(int ret) { // one line of a failure, with errno unchanged
    (void)rpma_peer_delete(NULL);
    return ret;
}

static int clear_errno(int ret) {
    errno = 0;
    return ret;
}

static int write_output(int ret) {
    w.h.odp = 1;
    return ret;
}

static int call_provider(int ret) {
    (void)ibv_dealloc_pd(ibv_alloc_pd(fake_context(0)));
    return ret;
}

static int log_error_number(void) {
    errno = EIO;
    return log_line(RPMA_E_INVAL);
}

static int log_nothing(int ret) {
    logged_forget();
    return ret;
}

// ---- violations of MUST(), EXPECT_CALLS() and EXPECT_ERROR() --------------------------------

#define VIOLATION(name) static void name(__attribute__((unused)) void **state)

VIOLATION(must_of_a_failure) {
    MUST(log_line(RPMA_E_NOMEM));
}
VIOLATION(must_of_a_failure_without_a_line) {
    MUST(RPMA_E_NOMEM);
}
VIOLATION(must_with_a_log_line) {
    MUST(log_line(0));
}
VIOLATION(must_that_clears_errno) {
    MUST(clear_errno(0));
}
VIOLATION(one_call_too_many) {
    MUST(call_provider(0));
    EXPECT_CALLS("ibv_alloc_pd");
}
VIOLATION(one_call_too_few) {
    MUST(call_provider(0));
    EXPECT_CALLS("ibv_alloc_pd ibv_dealloc_pd ibv_dealloc_pd");
}

#define EXPECT_NULL_PEER(call, ...)                                                         \
    EXPECT_ERROR_OF("rpma_peer_delete", call, RPMA_E_INVAL, "peer_ptr == NULL", "peer_ptr", \
                    __VA_ARGS__)
#define EXPECT_PEER(call) EXPECT_NULL_PEER(call, .error = 0)

VIOLATION(another_code) {
    EXPECT_PEER(log_line(RPMA_E_NOMEM));
}
VIOLATION(success) {
    EXPECT_PEER(log_line(0));
}
VIOLATION(a_written_output) {
    WATCH(w.h.event);
    WATCH(w.h.odp);
    EXPECT_PEER(write_output(log_line(RPMA_E_INVAL)));
}
VIOLATION(an_unexpected_call) {
    EXPECT_PEER(call_provider(log_line(RPMA_E_INVAL)));
}
VIOLATION(a_missing_call) {
    EXPECT_NULL_PEER(log_line(RPMA_E_INVAL), .calls = "ibv_dealloc_pd");
}
VIOLATION(two_lines) {
    EXPECT_PEER(log_line(log_line(RPMA_E_INVAL)));
}
VIOLATION(no_line) {
    EXPECT_PEER(RPMA_E_INVAL);
}
VIOLATION(the_line_of_another_function) {
    EXPECT_ERROR_OF("rpma_peer_cfg_delete", log_line(RPMA_E_INVAL), RPMA_E_INVAL, "",
                    "peer_ptr");
}
VIOLATION(another_cause) {
    EXPECT_NULL_PEER(log_line(RPMA_E_INVAL), .logs = "peer_ptr is too old");
}
VIOLATION(another_term) {
    EXPECT_ERROR_OF("rpma_peer_delete", log_line(RPMA_E_INVAL), RPMA_E_INVAL,
                    "peer_ptr == NULL", "*peer_ptr");
}
VIOLATION(another_beginning) {
    EXPECT_NULL_PEER(log_line(RPMA_E_INVAL), .before = "a peer: ");
}
VIOLATION(another_error_number) {
    EXPECT_NULL_PEER(log_line(RPMA_E_INVAL), .error = EIO);
}
VIOLATION(a_cleared_error_number) {
    EXPECT_PEER(clear_errno(log_line(RPMA_E_INVAL)));
}
VIOLATION(an_error_number_of_nothing) {
    EXPECT_NULL_PEER(log_error_number(), .own_error = EIO);
}
VIOLATION(a_forgotten_last_failure) {
    EXPECT_NULL_PEER(log_line(RPMA_E_INVAL), .own_error = EXDEV);
}
VIOLATION(another_level) {
    EXPECT_NULL_PEER(log_line(RPMA_E_INVAL), .level = RPMA_LOG_LEVEL_WARNING);
}
VIOLATION(an_unknown_condition) {
    EXPECT_ERROR_OF("rpma_peer_delete", log_line(RPMA_E_INVAL), RPMA_E_INVAL, "It rains.", "");
}
VIOLATION(two_conditions) {
    EXPECT_ERROR_OF("rpma_mr_reg", log_line(RPMA_E_INVAL), RPMA_E_INVAL, "0", "");
}

// ---- violations at the end of a test
// ---------------------------------------------------------

VIOLATION(a_domain_is_left) {
    (void)ibv_alloc_pd(fake_context(0));
}
VIOLATION(memory_is_left) {
    struct rpma_conn_cfg *cfg;
    MUST(rpma_conn_cfg_new(&cfg));
}
VIOLATION(a_descriptor_is_left) {
    (void)open("/dev/null", O_RDONLY | O_CLOEXEC);
}
VIOLATION(a_misuse) {
    struct ibv_pd *const pd = ibv_alloc_pd(fake_context(0));
    (void)ibv_dealloc_pd(pd);
    (void)ibv_dealloc_pd(pd);
}

// ---- violations of a sweep
// -------------------------------------------------------------------

// A scenario whose only step is rpma_peer_new(), and what the step does after a failure.
static bool step(struct fixture *w, int (*wrong)(int ret)) {
    fixture_begin(w);
    int ret = rpma_peer_new(fake_context(0), &w->h.peer);
    if (ret != 0)
        ret = wrong(ret);
    return fixture_step(w, ret, PEER_NEW, __FILE__, __LINE__);
}

static struct fixture *swept;

static int return_another_code(__attribute__((unused)) int ret) {
    return RPMA_E_NO_COMPLETION;
}
static int write_a_handle(int ret) {
    swept->h.odp = 1;
    return ret;
}
static int keep_a_domain(int ret) {
    fake_faults_off();
    (void)ibv_alloc_pd(fake_context(0));
    return ret;
}
static int keep_memory(int ret) {
    static struct rpma_conn_cfg *cfg;
    fake_faults_off();
    (void)rpma_conn_cfg_new(&cfg);
    return ret;
}
static int keep_a_descriptor(int ret) {
    (void)open("/dev/null", O_RDONLY | O_CLOEXEC);
    return ret;
}
static int fail_without_a_fault(int ret) {
    swept->sweep->cleaning = true;
    return ret;
}
static int misuse(int ret) {
    (void)ibv_dealloc_pd((struct ibv_pd *)&w);
    return ret;
}

typedef int wrong_function(int ret);

static bool scenario_of(struct fixture *w, const void *argument) {
    swept = w;
    return step(w, *(wrong_function *const *)argument);
}

static bool fails_always(__attribute__((unused)) struct fixture *w,
                         __attribute__((unused)) const void *argument) {
    return false;
}

static int right(int ret) {
    return ret;
}

enum { PEER_CALLS = 4 };

#define SWEEP(name, wrong)                                            \
    VIOLATION(name) {                                                 \
        wrong_function *const function = wrong;                       \
        sweep("violation", PEER_CALLS, scenario_of, &function, NULL); \
    }
SWEEP(an_undocumented_code, return_another_code)
SWEEP(a_written_handle, write_a_handle)
SWEEP(a_failure_with_two_lines, log_line)
SWEEP(a_failure_without_a_line, log_nothing)
SWEEP(a_domain_is_left_after_a_failure, keep_a_domain)
SWEEP(memory_is_left_after_a_failure, keep_memory)
SWEEP(a_descriptor_is_left_after_a_failure, keep_a_descriptor)
SWEEP(a_failure_without_a_fault, fail_without_a_fault)
SWEEP(a_misuse_after_a_failure, misuse)

VIOLATION(a_scenario_that_fails) {
    sweep("violation", PEER_CALLS, fails_always, NULL, NULL);
}
#if !defined(TEST_NATIVE_FLUSH) && !defined(TEST_NATIVE_ATOMIC_WRITE)
VIOLATION(another_number_of_calls) {
    wrong_function *const function = right;
    sweep("violation", PEER_CALLS + 1, scenario_of, &function, NULL);
}
#endif

// ---- the tests
// -------------------------------------------------------------------------------

#define ROW(function, message) \
    { cmocka_unit_test_setup_teardown(function, unit_setup, unit_teardown), message }

static const struct {
    struct CMUnitTest violation;
    const char *message; // part of what the violation must print
} rows[] = {
    ROW(must_of_a_failure, "= RPMA_E_NOMEM\n"),
    ROW(must_of_a_failure_without_a_line, "= RPMA_E_NOMEM\n"),
    ROW(must_with_a_log_line, "succeeds and logs a failure"),
    ROW(must_that_clears_errno, "leaves errno = 0"),
    ROW(one_call_too_many, "provider calls: \"ibv_alloc_pd ibv_dealloc_pd\""),
    ROW(one_call_too_few, "provider calls: \"ibv_alloc_pd ibv_dealloc_pd\""),
    ROW(another_code, "= RPMA_E_NOMEM instead of RPMA_E_INVAL"),
    ROW(success, "= 0 instead of RPMA_E_INVAL"),
    ROW(a_written_output, "failed and wrote w.h.odp"),
    ROW(an_unexpected_call, "provider calls: \"ibv_alloc_pd ibv_dealloc_pd\""),
    ROW(a_missing_call, "provider calls: \"\""),
    ROW(two_lines, "log of rpma_peer_delete: not one line"),
    ROW(no_line, "log of rpma_peer_delete: not one line"),
    ROW(the_line_of_another_function, "log of rpma_peer_cfg_delete: another function"),
    ROW(another_cause, "log of rpma_peer_delete: another cause"),
    ROW(another_term, "log of rpma_peer_delete: another cause"),
    ROW(another_beginning, "log of rpma_peer_delete: another cause"),
    ROW(another_error_number, "leaves errno = "),
    ROW(a_cleared_error_number, "leaves errno = 0"),
    ROW(an_error_number_of_nothing, "another failure in rpma_err_last_failure()"),
    ROW(a_forgotten_last_failure, "another failure in rpma_err_last_failure()"),
    ROW(another_level, "log of rpma_peer_delete: not one line"),
    ROW(an_unknown_condition, "contract/errors.tsv has no such row"),
    ROW(two_conditions, "several rows contain that condition"),
    ROW(a_domain_is_left, "1 PD left"),
    ROW(memory_is_left, "bytes left"),
    ROW(a_descriptor_is_left, "descriptors before the test"),
    ROW(a_misuse, "misuse:\nibv_dealloc_pd: the PD was released before"),
    ROW(an_undocumented_code, "= RPMA_E_NO_COMPLETION, which is not documented"),
    ROW(a_written_handle, "an output was written"),
    ROW(a_failure_with_two_lines, "not one log line of the function"),
    ROW(a_failure_without_a_line, "not one log line of the function"),
    ROW(a_domain_is_left_after_a_failure, "1 PD left"),
    ROW(memory_is_left_after_a_failure, "bytes left"),
    ROW(a_descriptor_is_left_after_a_failure, "a descriptor is left"),
    ROW(a_failure_without_a_fault, "still fails when the provider works again"),
    ROW(a_misuse_after_a_failure, "misuse:\nibv_dealloc_pd: "),
    ROW(a_scenario_that_fails, "failed without a fault"),
#if !defined(TEST_NATIVE_FLUSH) && !defined(TEST_NATIVE_ATOMIC_WRITE)
    ROW(another_number_of_calls, "4 calls that can fail instead of 5"),
#endif
};

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

TEST_THAT(violation_is_reported_by_its_message) {
    static char text[1 << 16];
    for (size_t i = 0; i < LENGTH(rows); i++) {
        if (passes(&rows[i].violation, text, sizeof(text)))
            fail_msg("%s passes:\n%s", rows[i].violation.name, text);
        if (!strstr(text, rows[i].message))
            fail_msg("%s prints this instead of \"%s\":\n%s", rows[i].violation.name,
                     rows[i].message, text);
    }
}

VIOLATION(correct_calls) {
    wrong_function *const function = right;
    WATCH(w.h.odp);
    EXPECT_PEER(log_line(RPMA_E_INVAL));
    MUST(call_provider(0));
    EXPECT_CALLS("ibv_alloc_pd ibv_dealloc_pd");
    fixture_conn(&w, &(struct shape){0});
    fixture_reset();
    if (!BUILD_FLUSHES && !BUILD_WRITES_ATOMICALLY)
        sweep("no violation", PEER_CALLS, scenario_of, &function, NULL);
}

TEST_THAT(correct_calls_are_accepted) {
    static char text[1 << 16];
    const struct CMUnitTest correct =
        cmocka_unit_test_setup_teardown(correct_calls, unit_setup, unit_teardown);
    if (!passes(&correct, text, sizeof(text)))
        fail_msg("%s", text);
}

TEST_THAT(exercised_rows_are_noted) {
    const char *why;
    char path[4096], text[256] = "";
    const struct contract_row *const row =
        contract_find("rpma_peer_delete", RPMA_E_INVAL, "NULL", &why);
    assert_non_null(row);
    const pid_t child = fork(); // this process has notes of its own
    if (child == 0) {
        contract_open_notes("instrument-notes");
        contract_exercised(row, "the cause", EIO);
        contract_close_notes();
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    snprintf(path, sizeof(path), "%s/instrument-notes.tsv", NOTES_DIRECTORY);
    FILE *const notes = fopen(path, "r");
    assert_non_null(notes);
    text[fread(text, 1, sizeof(text) - 1, notes)] = '\0';
    fclose(notes);
    unlink(path);
    char expected[256];
    snprintf(expected, sizeof(expected),
             "rpma_peer_delete\tRPMA_E_INVAL\t%s\tthe cause\tEIO\ncomplete\n", row->condition);
    assert_string_equal(text, expected);
}
