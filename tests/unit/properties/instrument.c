// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// instrument.c -- the harness reports each mistake of a library. instrument_sweeps.c does this
// for the sweeps, misuses.c for the fakes.

#include "operation.h"
#include "violation.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

// ---- calls that make a mistake -------------------------------------------------------------

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

static int log_of_peer_delete(enum rpma_log_level level, const char *format) {
    log_as(level, "rpma_peer_delete", format);
    return RPMA_E_INVAL;
}

// ---- violations of MUST(), EXPECT_CALLS() and EXPECT_ERROR() -------------------------------

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
VIOLATION(the_last_byte_of_an_output) {
    char output[16] = "";
    WATCH(output);
    EXPECT_PEER((output[15]++, log_line(RPMA_E_INVAL)));
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
VIOLATION(two_warnings) {
    EXPECT_NULL_PEER(log_of_peer_delete(RPMA_LOG_LEVEL_WARNING, "peer_ptr\n") +
                         log_of_peer_delete(RPMA_LOG_LEVEL_WARNING, "peer_ptr\n") -
                         RPMA_E_INVAL,
                     .level = RPMA_LOG_LEVEL_WARNING);
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
VIOLATION(an_unexpected_error_number) {
    EXPECT_NULL_PEER(log_of_peer_delete(RPMA_LOG_LEVEL_ERROR, "peer_ptr == NULL: %s (%d)\n"),
                     .error = 0);
}
#define EXPECT_FAILED_CALL(format, ...)                                                    \
    EXPECT_ERROR_OF("rpma_peer_new",                                                       \
                    (errno = EPERM, log_as(RPMA_LOG_LEVEL_ERROR, "rpma_peer_new", format), \
                     RPMA_E_PROVIDER),                                                     \
                    RPMA_E_PROVIDER, "ibv_query_device_ex", "ibv_query_device_ex()",       \
                    .error = EPERM, __VA_ARGS__)
VIOLATION(the_text_of_another_error_number) {
    EXPECT_FAILED_CALL("ibv_query_device_ex() failed: %s (%d)\n", .logs = "");
}
VIOLATION(a_missing_text_of_a_failed_call) {
    EXPECT_FAILED_CALL("ibv_query_device_ex() failed: Operation not permitted (1)\n",
                       .logs = "advice");
}
VIOLATION(a_line_without_a_newline) {
    EXPECT_NULL_PEER(log_of_peer_delete(RPMA_LOG_LEVEL_ERROR, "peer_ptr == NULL"), .error = 0);
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

// ---- violations of the comparison of requests ----------------------------------------------

#define ANOTHER(name, change)                                 \
    VIOLATION(another_##name) {                               \
        const struct fake_post expected = {0};                \
        struct fake_post got = expected;                      \
        change;                                               \
        operation_compare(&got, &expected, "another " #name); \
    }
ANOTHER(sge, got.sg_list.sges[FAKE_MAX_SGE - 1].length = 1)
ANOTHER(key, got.rkey = 1)
ANOTHER(inlined_byte, got.inlined[FAKE_MAX_INLINE - 1] = 1)

// ---- violations at the end of a test -------------------------------------------------------

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
VIOLATION(a_descriptor_is_closed) {
    close(STDIN_FILENO);
}
VIOLATION(a_misuse) {
    struct ibv_pd *const pd = ibv_alloc_pd(fake_context(0));
    (void)ibv_dealloc_pd(pd);
    (void)ibv_dealloc_pd(pd);
}

// ---- the tests -----------------------------------------------------------------------------

static const struct violation rows[] = {
    ROW(must_of_a_failure, "= RPMA_E_NOMEM\n"),
    ROW(must_of_a_failure_without_a_line, "= RPMA_E_NOMEM\n"),
    ROW(must_with_a_log_line, "succeeds and logs a failure"),
    ROW(must_that_clears_errno, "leaves errno = 0"),
    ROW(one_call_too_many, "provider calls: \"ibv_alloc_pd ibv_dealloc_pd\""),
    ROW(one_call_too_few, "provider calls: \"ibv_alloc_pd ibv_dealloc_pd\""),
    ROW(another_code, "= RPMA_E_NOMEM instead of RPMA_E_INVAL"),
    ROW(success, "= 0 instead of RPMA_E_INVAL"),
    ROW(a_written_output, "failed and wrote w.h.odp"),
    ROW(the_last_byte_of_an_output, "failed and wrote output"),
    ROW(an_unexpected_call, "provider calls: \"ibv_alloc_pd ibv_dealloc_pd\""),
    ROW(a_missing_call, "provider calls: \"\""),
    ROW(two_lines, "log of rpma_peer_delete: not one line"),
    ROW(two_warnings, "log of rpma_peer_delete: not one line"),
    ROW(no_line, "log of rpma_peer_delete: not one line"),
    ROW(the_line_of_another_function, "log of rpma_peer_cfg_delete: another function"),
    ROW(another_cause, "log of rpma_peer_delete: another cause"),
    ROW(another_term, "log of rpma_peer_delete: another cause"),
    ROW(another_beginning, "log of rpma_peer_delete: another cause"),
    ROW(another_error_number, "leaves errno = "),
    ROW(a_cleared_error_number, "leaves errno = 0"),
    ROW(an_error_number_of_nothing, "another failure in rpma_err_last_failure()"),
    ROW(a_forgotten_last_failure, "another failure in rpma_err_last_failure()"),
    ROW(an_unexpected_error_number, "log of rpma_peer_delete: an unexpected error number"),
    ROW(the_text_of_another_error_number, "log of rpma_peer_new: another cause"),
    ROW(a_missing_text_of_a_failed_call, "log of rpma_peer_new: another cause"),
    ROW(a_line_without_a_newline, "log of rpma_peer_delete: no newline"),
    ROW(another_level, "log of rpma_peer_delete: not one line"),
    ROW(an_unknown_condition, "contract/errors.tsv has no such row"),
    ROW(two_conditions, "several rows contain that condition"),
    ROW(another_sge, "another sge: opcode 0"),
    ROW(another_key, "another key: opcode 0"),
    ROW(another_inlined_byte, "another inlined_byte: opcode 0"),
    ROW(a_domain_is_left, "1 PD left"),
    ROW(memory_is_left, "bytes left"),
    ROW(a_descriptor_is_left, "descriptors before the test"),
    ROW(a_descriptor_is_closed, "descriptors before the test"),
    ROW(a_misuse, "misuse:\nibv_dealloc_pd: the PD was released before"),
};

TEST_THAT(violation_is_reported_by_its_message) {
    violations_are_reported(rows, LENGTH(rows));
}

VIOLATION(correct_calls) {
    WATCH(w.h.odp);
    EXPECT_PEER(log_line(RPMA_E_INVAL));
    MUST(call_provider(0));
    EXPECT_CALLS("ibv_alloc_pd ibv_dealloc_pd");
    fixture_conn(&w, &(struct shape){0});
    fixture_reset();
}

TEST_THAT(correct_calls_are_accepted) {
    correct_calls_pass(correct_calls);
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
