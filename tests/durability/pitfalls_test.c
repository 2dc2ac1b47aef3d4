// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// pitfalls_test.c -- rdma_sim_explore() finds the mistake of each wrong program of
// rpma_pitfalls(7), and nothing in the corrected ones

#include "common.h"
#include "modules.h"
#include "pitfalls/pitfalls.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <rdma-sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD sizeof(uint64_t)

static char bytes[BLOCK_SIZE] __attribute__((aligned(64))); // of the server
static unsigned entry;                                      // of rpma_pitfalls(7)
static bool wrong, is_safe, was_invisible;
static unsigned number; // the last one that the client reported as safe

static void persist(const void *ptr, size_t size) {
    if (rdma_sim_persist(ptr, size))
        abort();
}

struct memory server_memory = {
    .ptr = bytes, .size = sizeof(bytes), .persist = persist, .fd = -1};

static bool has_record(void) {
    for (size_t i = 0; i < LEN; i++)
        if (bytes[RECORD + i] != RECORD_BYTE)
            return false;
    return true;
}

// The number that the program of entry 6 reads after a restart.
static unsigned recovered_number(void) {
    const size_t places[] = {POINTER, POINTER_2};
    unsigned newest = 0;
    for (size_t i = 0; i < 2; i++) {
        const unsigned char *place = (const unsigned char *)bytes + places[i];
        if (!memcmp(place, place + 1, WORD - 1) && *place > newest)
            newest = *place;
    }
    return newest;
}

void report_safe(unsigned safe_number) {
    if (safe_number)
        number = safe_number;
    is_safe |= entry != 4 && entry != 6;
    was_invisible |= entry == 4 && !has_record();
}

static const char *check(void *argument) {
    const uint64_t one = 1;
    (void)argument;
    if (entry == 6)
        return recovered_number() < number ? "a number reported as safe is not found" : NULL;
    if (!memcmp(bytes + POINTER, &one, WORD) && !has_record())
        return "a pointer exists without its record";
    if (was_invisible)
        return "a record reported as visible is not";
    return is_safe && !has_record() ? "a record reported as safe is lost" : NULL;
}

// ---- the programs --------------------------------------------------------------------------

static struct module server, client;

// --direct-write is step 9 of rpma_pmem(7). In entry 1, the operator has skipped it.
static int run_program(bool is_server) {
    char name[] = "pitfalls", text[8], variant[] = "--wrong", option[] = "--direct-write",
         address[] = "10.77.0.1", port[] = "7471";
    char *argv[8] = {name};
    int argc = 1;
    snprintf(text, sizeof(text), "%u", entry);
    if (wrong)
        argv[argc++] = variant;
    if (is_server && entry != 1)
        argv[argc++] = option;
    argv[argc++] = address;
    argv[argc++] = port;
    argv[argc++] = text;
    return run_module(is_server ? &server : &client, argc, argv);
}

static int run_server(void *argument) {
    (void)argument;
    return run_program(true);
}

static int run_client(void *argument) {
    (void)argument;
    return run_program(false);
}

static int explore(const char *device, const char *faults, const char *search,
                   unsigned schedules) {
    const struct rdma_sim_program programs[] = {{1, run_server, NULL, "server"},
                                                {2, run_client, NULL, "client"}};
    // In entry 1, DDIO is enabled; in entry 10, the file is not persistent memory.
    const struct rdma_sim_memory memory = {1, bytes, sizeof(bytes),
                                           entry == 1 || entry == 10
                                               ? RDMA_SIM_MEMORY_NO_DIRECT_WRITE
                                           : entry == 6 ? RDMA_SIM_MEMORY_TEARS
                                                        : 0};
    // Entry 4 concerns visible data, which ends with the power.
    const struct rdma_sim_test test = {.options = {.device = device},
                                       .programs = programs,
                                       .program_count = 2,
                                       .check = check,
                                       .schedules = schedules,
                                       .faults = faults,
                                       .search = search,
                                       .memories = &memory,
                                       .memory_count = entry == 4 ? 0 : 1};
    server_memory.is_pmem = entry != 10;
    return rdma_sim_explore(&test);
}

// ---- tests ---------------------------------------------------------------------------------

static const char native[] = "rxe", emulated[] = "mlx5";

static void mistake_of_each_entry_is_found(void **state) {
    static const struct {
        unsigned entry;
        const char *finding;
        unsigned schedules; // most of them until the finding, with native flushes
        bool is_native_only;
    } rows[] = {
        {1, "a record reported as safe is lost", 100, false},
        {2, "a record reported as safe is lost", 100, false},
        // An emulated flush makes all earlier writes persistent.
        {3, "a record reported as safe is lost", 100, true},
        {4, "a record reported as visible is not", 100, false},
        {5, "a pointer exists without its record", 300, false},
        {6, "a number reported as safe is not found", 600, false},
        {7, "a record reported as safe is lost", 100, false},
        {8, "a record reported as safe is lost", 100, false},
        {9, "a record reported as safe is lost", 100, false},
        {10, "a record reported as safe is lost", 100, false},
    };
    (void)state;
    wrong = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        for (int is_native = 1; is_native >= (rows[i].is_native_only ? 1 : 0); is_native--) {
            entry = rows[i].entry;
            const int found =
                explore(is_native ? native : emulated, "all", NULL, rows[i].schedules);
            print_message("entry %u, %s: %s\n", entry, is_native ? native : emulated,
                          rdma_sim_error());
            assert_int_equal(found, RDMA_SIM_FOUND);
            assert_non_null(strstr(rdma_sim_error(), rows[i].finding));
        }
}

static void program_without_a_flush_passes_a_test_without_power_failures(void **state) {
    (void)state;
    wrong = true;
    entry = 2;
    assert_int_equal(explore(native, "kill", NULL, 300), 0);
}

static void corrected_program_has_no_finding(void **state) {
    (void)state;
    wrong = false;
    for (entry = 1; entry <= 10; entry++)
        if (entry != 2)
            for (int is_native = 0; is_native < 2; is_native++)
                if (explore(is_native ? native : emulated, "all", NULL, is_native ? 1000 : 200))
                    fail_msg("entry %u: %s", entry, rdma_sim_error());
}

static void corrected_program_with_one_power_failure_has_no_finding(void **state) {
    (void)state;
    wrong = false;
    for (entry = 1; entry <= 10; entry++)
        if (entry != 2 && entry != 4 && explore(native, "power-off", "exhaustive", 300))
            fail_msg("entry %u: %s", entry, rdma_sim_error());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistake_of_each_entry_is_found),
        cmocka_unit_test(program_without_a_flush_passes_a_test_without_power_failures),
        cmocka_unit_test(corrected_program_has_no_finding),
        cmocka_unit_test(corrected_program_with_one_power_failure_has_no_finding),
    };
    server = load_module("pitfalls-server");
    client = load_module("pitfalls-client");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
