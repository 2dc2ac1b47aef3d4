/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* explored_faults_test.c -- rdma_sim_explore(): the clock, faults that a program adds,
 * programs that recover from faults, and the limit of shortening
 */

#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <rdma-sim.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* A program returns the line of its first failure. */
#define MUST(call)           \
    do {                     \
        if (!(call))         \
            return __LINE__; \
    } while (0)

static unsigned starts, ends;

static int explore(const struct rdma_sim_program *programs, unsigned count,
                   const char *(*check)(void *)) {
    const struct rdma_sim_test test = {
        .programs = programs, .program_count = count, .check = check, .schedules = 20};
    return rdma_sim_explore(&test);
}

/* ---- the clock, and faults of programs -----------------------------------------------------
 */

static int64_t now(void) {
    struct timespec time;
    return rdma_sim_clock_gettime(CLOCK_REALTIME, &time) == 0
               ? (int64_t)time.tv_sec * 1000000000 + time.tv_nsec
               : -1;
}

static int read_clock(void *argument) {
    const int64_t begin = now();
    (void)argument;
    MUST(begin == 1000000000000);
    rdma_sim_advance(2500000000);
    MUST(now() == begin + 2500000000);
    return 0;
}

static void program_has_the_time_of_the_fabric(void **state) {
    const struct rdma_sim_program program = {1, read_clock, NULL, NULL};
    struct timespec before, after;
    (void)state;
    if (explore(&program, 1, NULL) != 0)
        fail_msg("%s", rdma_sim_error());
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &before), 0);
    assert_int_equal(rdma_sim_clock_gettime(CLOCK_MONOTONIC, &after), 0);
    assert_in_range(after.tv_sec, before.tv_sec, before.tv_sec + 600);
}

static int refuse_faults(void *argument) {
    (void)argument;
    MUST(rdma_sim_fault("freeze") == EINVAL && rdma_sim_fault("freeze host3") == ERANGE);
    MUST(rdma_sim_fault("clock-ahead host1 1s") == ENOTSUP);
    return 0;
}

/* The other one starts after a second. */
static int freeze_other(void *argument) {
    (void)argument;
    rdma_sim_advance(1500000000);
    return rdma_sim_fault("freeze host2 for 10s");
}

/* `argument`: the time that this takes. */
static int wait_shortly(void *argument) {
    int64_t *const lasted = argument, begin = now();
    rdma_sim_advance(1000000000);
    *lasted = now() - begin;
    return 0;
}

static int64_t shortly;

static const char *check_frozen(void *argument) {
    (void)argument;
    return shortly >= 10000000000 ? "it was frozen" : NULL;
}

static void fault_of_a_program_concerns_another_one(void **state) {
    struct rdma_sim_program programs[] = {{1, freeze_other, NULL, NULL},
                                          {2, wait_shortly, &shortly, NULL}};
    (void)state;
    assert_int_equal(explore(programs, 2, check_frozen), RDMA_SIM_FOUND);
    assert_non_null(strstr(rdma_sim_error(), "it was frozen"));
    programs[0].run = refuse_faults;
    if (explore(programs, 2, NULL) != 0)
        fail_msg("%s", rdma_sim_error());
}

static const char *check_restarted(void *argument) {
    (void)argument;
    return starts == 2 && ends == 1 ? "it was started again" : NULL;
}

static int end_itself(void *argument) {
    (void)argument;
    starts++;
    if (starts == 1)
        MUST(rdma_sim_fault("kill host1 for 1s") == ESRCH); /* it does not return */
    ends++;
    return 0;
}

static void program_that_is_killed_by_itself_is_started_again(void **state) {
    const struct rdma_sim_program program = {1, end_itself, NULL, NULL};
    (void)state;
    assert_int_equal(explore(&program, 1, check_restarted), RDMA_SIM_FOUND);
    assert_non_null(strstr(rdma_sim_error(), "it was started again"));
}

static int has_ended, forgets;

static int await_end(void *argument) {
    (void)argument;
    while (!has_ended)
        rdma_sim_advance(1000000000);
    return 0;
}

static int count_start_and_end(void *argument) {
    (void)argument;
    if (starts > 0 && forgets)
        return 0;
    starts++;
    rdma_sim_advance(1000000);
    has_ended = 1;
    return 0;
}

static int explore_recovery(int (*run)(void *), unsigned flags) {
    const struct rdma_sim_program programs[] = {{1, await_end, NULL, NULL},
                                                {2, run, NULL, NULL}};
    const struct rdma_sim_test test = {.programs = programs,
                                       .program_count = 2,
                                       .schedules = UINT64_MAX,
                                       .faults = "kill",
                                       .search = "exhaustive:1",
                                       .flags = flags};
    return rdma_sim_explore(&test);
}

static void program_that_does_not_recover_is_a_finding_if_wanted(void **state) {
    (void)state;
    for (forgets = 0; forgets < 2; forgets++)
        for (unsigned flags = 0; flags <= RDMA_SIM_TEST_RECOVERS;
             flags += RDMA_SIM_TEST_RECOVERS) {
            const int result = explore_recovery(count_start_and_end, flags);
            if (result != (forgets && flags ? RDMA_SIM_FOUND : 0))
                fail_msg("%d, %u: %s", forgets, flags, rdma_sim_error());
            if (result != 0)
                assert_non_null(strstr(rdma_sim_error(), "wait for ever: host1 waits in"));
        }
}

/* ---- shortening ---------------------------------------------------------------------------
 */

static unsigned *runs; /* of all schedules */

static int wait_often(void *argument) {
    (void)argument;
    for (int i = 0; i < 50; i++)
        rdma_sim_advance(100000000);
    return 0;
}

static const char *count_run(void *argument) {
    (void)argument;
    return ++*runs == 2 ? "the second schedule" : NULL; /* the shorter ones are tried */
}

static unsigned runs_of(unsigned shortening) {
    const struct rdma_sim_program programs[] = {{1, wait_often, NULL, NULL},
                                                {2, wait_often, NULL, NULL}};
    const struct rdma_sim_test test = {
        .programs = programs, .program_count = 2, .check = count_run, .shortening = shortening};
    *runs = 0;
    assert_int_equal(rdma_sim_explore(&test), RDMA_SIM_FOUND);
    return *runs;
}

/* Besides the schedule without choices, the one with the finding, and the last one. */
static void shortening_is_limited(void **state) {
    (void)state;
    runs = mmap(NULL, sizeof(*runs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(runs != MAP_FAILED);
    assert_int_equal(runs_of(2), 5);
    assert_true(runs_of(0) > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_has_the_time_of_the_fabric),
        cmocka_unit_test(fault_of_a_program_concerns_another_one),
        cmocka_unit_test(program_that_is_killed_by_itself_is_started_again),
        cmocka_unit_test(program_that_does_not_recover_is_a_finding_if_wanted),
        cmocka_unit_test(shortening_is_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
