/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* explored_test.c -- rdma_sim_explore(): programs that do not end, and those that wait for long
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <infiniband/verbs.h>
#include <rdma-sim.h>

static int query_for_ever(void *argument) {
    (void)argument;
    struct ibv_context *const device = ibv_open_device(*ibv_get_device_list(NULL));
    struct ibv_device_attr attr;
    while (device == NULL || ibv_query_device(device, &attr) == 0)
        ;
    return 1;
}

/* 10 times 200 s without a call of the device. */
static int wait_for_long(void *argument) {
    (void)argument;
    for (int i = 0; i < 10; i++)
        rdma_sim_advance(200000000000);
    return 0;
}

static int explore(int (*run)(void *), const char *faults, uint64_t seed) {
    const struct rdma_sim_program programs[] = {{1, run, NULL, NULL}};
    const struct rdma_sim_test test = {.options = {.hosts = 1, .seed = seed},
                                       .programs = programs,
                                       .program_count = 1,
                                       .schedules = 1,
                                       .faults = faults};
    return rdma_sim_explore(&test);
}

static void endless_program_after_a_fault_is_no_finding(void **state) {
    (void)state;
    /* This seed has a fault, which concerns posts; without it, the program is a finding. */
    assert_int_equal(explore(query_for_ever, "refuse", 2), 0);
}

static void program_with_long_waits_is_no_finding(void **state) {
    (void)state;
    assert_int_equal(explore(wait_for_long, "none", 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endless_program_after_a_fault_is_no_finding),
        cmocka_unit_test(program_with_long_waits_is_no_finding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
