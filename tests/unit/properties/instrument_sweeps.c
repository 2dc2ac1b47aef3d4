// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// instrument_sweeps.c -- a sweep reports each mistake of a library.

#include "sweep.h"
#include "violation.h"

#include <fcntl.h>
#include <stdlib.h>

static const char PEER_NEW[] = "rpma_peer_new(ibv_ctx, &peer)";

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
static int keep_a_domain_at_the_last_error(int ret) {
    return swept->sweep->error == ENODATA ? keep_a_domain(ret) : ret;
}
static int keep_a_domain_if_all_fail(int ret) {
    return swept->sweep->later ? keep_a_domain(ret) : ret;
}
static int log_a_detail(int ret) { // in place of the failure
    logged_forget();
    log_as(RPMA_LOG_LEVEL_DEBUG, "rpma_peer_new", "a detail\n");
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
        unsetenv("SWEEP_ONE_ERROR");                                  \
        wrong_function *const function = wrong;                       \
        sweep("violation", PEER_CALLS, scenario_of, &function, NULL); \
    }
SWEEP(an_undocumented_code, return_another_code)
SWEEP(a_written_handle, write_a_handle)
SWEEP(a_failure_with_two_lines, log_line)
SWEEP(a_failure_without_a_line, log_nothing)
SWEEP(a_failure_with_a_detail_alone, log_a_detail)
SWEEP(a_domain_is_left_after_a_failure, keep_a_domain)
SWEEP(a_domain_is_left_after_one_error, keep_a_domain_at_the_last_error)
SWEEP(a_domain_is_left_if_all_calls_fail, keep_a_domain_if_all_fail)
SWEEP(memory_is_left_after_a_failure, keep_memory)
SWEEP(a_descriptor_is_left_after_a_failure, keep_a_descriptor)
SWEEP(a_failure_without_a_fault, fail_without_a_fault)
SWEEP(a_misuse_after_a_failure, misuse)

// A failed call of this name clears the handle of a request, or that of a peer configuration.
static bool loses_a_handle(struct fixture *w, const void *call) {
    void *const handle = w;
    const bool is_request = !strstr(call, "_req_");
    *(is_request ? (void **)&w->h.req : (void **)&w->h.pcfg) = handle;
    fixture_begin(w);
    const int ret = rpma_peer_new(fake_context(0), &w->h.peer);
    w->h.req = NULL;
    w->h.pcfg = NULL;
    return fixture_step(w, ret ? RPMA_E_PROVIDER : 0, call, __FILE__, __LINE__);
}
#define LOSES(name, call)                                           \
    VIOLATION(name) {                                               \
        sweep("violation", PEER_CALLS, loses_a_handle, call, NULL); \
    }
LOSES(a_request_lost_by_a_peer, PEER_NEW)
LOSES(a_request_lost_by_a_connection, "rpma_conn_delete()")
LOSES(a_configuration_lost_by_a_request, "rpma_conn_req_delete()")

// errors.tsv has a row for this code, which says that it never occurs.
static bool fails_undocumented(struct fixture *w,
                               __attribute__((unused)) const void *argument) {
    fixture_begin(w);
    const int ret = rpma_peer_new(fake_context(0), &w->h.peer);
    return fixture_step(w, ret ? RPMA_E_NOMEM : 0, "rpma_conn_next_event()", __FILE__,
                        __LINE__);
}
VIOLATION(a_code_that_never_occurs) {
    sweep("violation", PEER_CALLS, fails_undocumented, NULL, NULL);
}

// The mistake needs two calls that fail, and one between them that does not.
static int keep_a_domain_at_the_second(int ret) {
    const bool is_wrong = fake_faults_fired() == 2 && !swept->sweep->later;
    return is_wrong ? keep_a_domain(ret) : ret;
}
static bool tries_again(struct fixture *w, __attribute__((unused)) const void *argument) {
    swept = w;
    return step(w, keep_a_domain_at_the_second) || step(w, keep_a_domain_at_the_second);
}
VIOLATION(a_domain_is_left_after_two_failures) {
    unsetenv("SWEEP_ONE_ERROR");
    sweep("violation", PEER_CALLS, tries_again, NULL, NULL);
}

// A scenario that begins again until a call fails.
static bool never_ends(struct fixture *w, __attribute__((unused)) const void *argument) {
    swept = w;
    while (step(w, right) && fixture_delete(w))
        ;
    return false;
}
VIOLATION(a_scenario_without_an_end) {
    sweep("violation", PEER_CALLS, never_ends, NULL, NULL);
}
VIOLATION(a_scenario_that_fails) {
    sweep("violation", PEER_CALLS, fails_always, NULL, NULL);
}
#if !defined(TEST_NATIVE_FLUSH) && !defined(TEST_NATIVE_ATOMIC_WRITE)
VIOLATION(another_number_of_calls) {
    wrong_function *const function = right;
    sweep("violation", PEER_CALLS + 1, scenario_of, &function, NULL);
}
#endif

static const struct violation rows[] = {
    ROW(an_undocumented_code, "= RPMA_E_NO_COMPLETION, which is not documented"),
    ROW(a_written_handle, "an output was written"),
    ROW(a_failure_with_two_lines, "not one log line of the function"),
    ROW(a_failure_without_a_line, "not one log line of the function"),
    ROW(a_failure_with_a_detail_alone, "not one log line of the function"),
    ROW(a_domain_is_left_after_a_failure, "1 PD left"),
    ROW(a_domain_is_left_after_one_error, "1 PD left"),
    ROW(a_domain_is_left_if_all_calls_fail, "1 PD left"),
    ROW(memory_is_left_after_a_failure, "bytes left"),
    ROW(a_descriptor_is_left_after_a_failure, "a descriptor is left"),
    ROW(a_failure_without_a_fault, "still fails when the provider works again"),
    ROW(a_misuse_after_a_failure, "misuse:\nibv_dealloc_pd: "),
    ROW(a_request_lost_by_a_peer, "an output was written"),
    ROW(a_request_lost_by_a_connection, "an output was written"),
    ROW(a_configuration_lost_by_a_request, "an output was written"),
    ROW(a_code_that_never_occurs, "= RPMA_E_NOMEM, which is not documented"),
    ROW(a_domain_is_left_after_two_failures, "1 PD left"),
    ROW(a_scenario_without_an_end, "the scenario never passes"),
    ROW(a_scenario_that_fails, "failed without a fault"),
#if !defined(TEST_NATIVE_FLUSH) && !defined(TEST_NATIVE_ATOMIC_WRITE)
    ROW(another_number_of_calls, "4 calls that can fail instead of 5"),
#endif
};

TEST_THAT(violation_is_reported_by_its_message) {
    violations_are_reported(rows, LENGTH(rows));
}

VIOLATION(correct_calls) {
    wrong_function *const function = right;
    if (!BUILD_FLUSHES && !BUILD_WRITES_ATOMICALLY)
        sweep("no violation", PEER_CALLS, scenario_of, &function, NULL);
}

TEST_THAT(correct_calls_are_accepted) {
    correct_calls_pass(correct_calls);
}
