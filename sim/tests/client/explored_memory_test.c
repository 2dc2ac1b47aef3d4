/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* explored_memory_test.c -- rdma_sim_explore(): memory that survives power failures
 */

#include "explored.h"

static int has_reported; /* a program has reported its data as safe */

enum { NOTHING, READ, ATOMIC }; /* what makes a word persistent */

/* Writes a word and reports it as safe. */
static int write_safely(void *argument) {
    struct client client;
    MUST(connect_client(&client) == 0);
    MUST(write_word(&client, 8, 0x0101010101010101) == 0);
    if (*(const int *)argument == READ)
        MUST(read_word(&client, 8) == 0);
    if (*(const int *)argument == ATOMIC)
        MUST(execute(&client, IBV_WR_ATOMIC_CMP_AND_SWP, 0, 0) == 0);
    has_reported = 1;
    return rdma_disconnect(client.id);
}

static int store_safely(void *argument) {
    rdma_sim_advance(1);
    memory.counter = 0x0101010101010101;
    if (*(const int *)argument)
        MUST(rdma_sim_persist(&memory.counter, sizeof(memory.counter)) == 0);
    has_reported = 1;
    return 0;
}

static const char *check_word(void *argument) {
    (void)argument;
    return !has_reported || memory.counter == 0x0101010101010101 ? NULL : "the word is lost";
}

static int is_torn(uint64_t word) {
    return word != (word & 0xff) * 0x0101010101010101;
}

static const char *check_whole(void *argument) {
    (void)argument;
    return is_torn(memory.counter) ? "the word is torn" : NULL;
}

static void power_failure_loses_what_was_not_persistent(void **state) {
    static const struct {
        int (*run)(void *);
        const char *(*check)(void *);
        int makes_persistent;
        unsigned flags;
        const char *platform;
        const char *finding; /* NULL: none */
    } rows[] = {
        {write_safely, check_word, READ, 0, NULL, NULL},
        {write_safely, check_word, ATOMIC, 0, NULL, NULL},
        {write_safely, check_word, NOTHING, 0, NULL, "the check fails: the word is lost"},
        {write_safely, check_word, READ, RDMA_SIM_MEMORY_NO_DIRECT_WRITE, NULL,
         "the check fails: the word is lost"},
        {write_safely, check_word, READ, 0, "cpu-flush", "the check fails: the word is lost"},
        {write_safely, check_word, READ, 0, "flush-only", NULL},
        {write_safely, check_word, ATOMIC, 0, "flush-only",
         "the check fails: the word is lost"},
        {store_safely, check_word, READ, RDMA_SIM_MEMORY_NO_DIRECT_WRITE, "cpu-flush", NULL},
        {store_safely, check_word, NOTHING, 0, NULL, "the check fails: the word is lost"},
        {write_safely, check_whole, READ, 0, NULL, NULL},
        {write_safely, check_whole, READ, RDMA_SIM_MEMORY_TEARS, NULL,
         "the check fails: the word is torn"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const int is_client = rows[i].run == write_safely;
        int makes_persistent = rows[i].makes_persistent;
        const struct rdma_sim_program programs[] = {
            {1, is_client ? serve : rows[i].run, &makes_persistent, NULL},
            {2, rows[i].run, &makes_persistent, NULL}};
        const struct rdma_sim_memory lost = {1, &memory, sizeof(memory), rows[i].flags};
        const struct rdma_sim_test test = {.programs = programs,
                                           .program_count = is_client ? 2 : 1,
                                           .check = rows[i].check,
                                           .schedules = 400,
                                           .faults = "power-off",
                                           .memories = &lost,
                                           .memory_count = 1,
                                           .platform = rows[i].platform};
        clients = 1;
        const int found = rdma_sim_explore(&test);
        if (found != (rows[i].finding ? RDMA_SIM_FOUND : 0))
            fail_msg("row %zu: %d, %s", i, found, rdma_sim_error());
        if (rows[i].finding)
            assert_non_null(strstr(rdma_sim_error(), rows[i].finding));
    }
    assert_int_equal(memory.counter, 0); /* of this process */
    assert_int_equal(rdma_sim_persist(&memory, 8), ENOENT);
}

static int has_value(unsigned number, uint64_t expected) {
    uint64_t value = ~expected;
    return rdma_sim_possible_value(&memory.counter, number, &value) == 0 && value == expected;
}

/* Its connection has the memory of the server, which is of this process. */
static int check_persistence(void *argument) {
    struct client client;
    uint64_t value;
    (void)argument;
    MUST(connect_client(&client) == 0);
    MUST(rdma_sim_check_persistent(&memory, sizeof(memory)) == 0);
    MUST(write_word(&client, 8, 7) == 0);
    MUST(rdma_sim_check_persistent(&memory, sizeof(memory)) == ENODATA);
    MUST(strstr(rdma_sim_error(), "a power failure can change the data at ") != NULL);
    MUST(rdma_sim_check_persistent(&memory.lock, 8) == 0);
    MUST(write_word(&client, 8, 0) == 0); /* 7 can remain */
    MUST(rdma_sim_check_persistent(&memory.counter, 8) == ENODATA);
    MUST(has_value(0, 0) && has_value(1, 7) && has_value(2, 0) && has_value(3, 0));
    MUST(rdma_sim_possible_value(&memory.counter, 4, &value) == ENODATA);
    MUST(rdma_sim_possible_value(&client, 0, &value) == ENODATA);
    MUST(read_word(&client, 8) == 0);
    MUST(has_value(0, 0) && has_value(1, 0));
    MUST(rdma_sim_possible_value(&memory.counter, 2, &value) == ENODATA);
    MUST(rdma_sim_check_persistent(&memory, sizeof(memory)) == 0);
    MUST(rdma_sim_check_persistent(&memory, sizeof(memory) + 1) == ENODATA);
    memory.lock = 1;
    MUST(rdma_sim_check_persistent(&memory.lock, 8) == ENODATA);
    MUST(rdma_sim_persist(&memory.lock, 8) == 0);
    MUST(rdma_sim_check_persistent(&memory.lock, 8) == 0);
    MUST(rdma_disconnect(client.id) == 0);
    return 0;
}

static void content_is_persistent_after_its_flush(void **state) {
    const struct rdma_sim_program programs[] = {{1, serve, NULL, NULL},
                                                {2, check_persistence, NULL, NULL}};
    const struct rdma_sim_memory lost = {1, &memory, sizeof(memory), 0};
    const struct rdma_sim_test test = {.options = {.strong = "word-order"},
                                       .programs = programs,
                                       .program_count = 2,
                                       .schedules = 50,
                                       .memories = &lost,
                                       .memory_count = 1};
    (void)state;
    clients = 1;
    assert_int_equal(rdma_sim_explore(&test), 0);
    assert_int_equal(rdma_sim_check_persistent(&memory, 8), ENOENT);
    uint64_t value;
    assert_int_equal(rdma_sim_possible_value(&memory, 0, &value), ENOENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_failure_loses_what_was_not_persistent),
        cmocka_unit_test(content_is_persistent_after_its_flush),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
