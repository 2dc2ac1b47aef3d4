// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// block_mover_test.c -- runs the programs of example 15 as they are: no client accepts a wrong
// block, and each client moves all blocks, whatever fails meanwhile
//
// block_mover SETTING CONFIGURATION [SCHEDULES [SEED]]

#include "block_mover.h"
#include "modules.h"

#include <rdma-sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

const struct setting *setting;
const struct configuration *chosen;
int form;
char addresses[PROGRAMS_MAX][16];
char file_bytes[FILE_SIZE] __attribute__((aligned(4096)));
size_t file_size = FILE_SIZE;
uint32_t sum;

static struct module modules[PROGRAMS_MAX];
static char file[32], store[STORE_BLOCKS][BLOCK_SIZE];

static const struct setting settings[] = {
    {.name = "mover", .servers = 1, .clients = 3},
    {.name = "mover-2", .servers = 2, .clients = 2},
    {.name = "mover-4", .servers = 4, .clients = 1},
    {.name = "mover-damaged", .servers = 2, .clients = 1, .is_damaged = true},
    {.name = "mover-endless", .servers = 2, .clients = 1, .is_endless = true},
    {.name = "mover-full", .servers = 1, .clients = 9, .is_full = true},
    {.name = "mover-untrusted",
     .servers = 1,
     .clients = 2,
     .first_client = "08-messages-ping-pong-client"},
    // Then the FORM of the untrusted client.
    {.name = "mover-untrusted-",
     .servers = 1,
     .clients = 2,
     .first_client = "untrusted-mover-client"},
    // Then the FORM of the replies of the first server.
    {.name = "mover-bad-reply-", .servers = 2, .clients = 1},
};

static const struct configuration configurations[] = {
    {.name = "native",
     .device = "rxe",
     .schedules = 150,
     .faults =
         "cut,cut-one-way,flap,port-down,kill,freeze,power-off,refuse,doorbell,drop-cm,remove",
     .removes_device = true,
     .refuses_posts = true},
    {.name = "hardware",
     .device = "mlx5",
     .schedules = 150,
     .faults = "cut,cut-one-way,flap,port-down,kill,freeze,power-off,refuse,drop-cm,remove",
     .removes_device = true,
     .refuses_posts = true},
    {.name = "network",
     .device = "rxe",
     .schedules = 150,
     .faults = "cut,cut-one-way,flap,port-down,drop-cm"},
    {.name = "removal",
     .device = "rxe",
     .schedules = 150,
     .faults = "remove",
     .removes_device = true},
    {.name = "bonds", .device = "rxe", .schedules = 100, .faults = "addr-change"},
    {.name = "faultless",
     .device = "siw",
     .schedules = 20,
     .faults = "none",
     .is_without_loss = true},
};

// What fill_block() of the examples writes.
static void fill_store(void) {
    char line[64];
    for (unsigned block = 0; block < STORE_BLOCKS; block++) {
        uint32_t checksum = 2166136261U;
        for (size_t done = 0; done < BLOCK_SIZE; done += 32) {
            snprintf(line, sizeof(line), "librpma example %02u, line %06zu\n", block,
                     done / 32 + 1);
            memcpy(store[block] + done, line, 32);
        }
        for (size_t i = 0; i < BLOCK_SIZE; i++)
            checksum = (checksum ^ (unsigned char)store[block][i]) * 16777619U;
        sum += checksum * (block + 1);
    }
}

// ---- the programs --------------------------------------------------------------------------

static unsigned number_of(int client) {
    return (unsigned)client - setting->servers + 1;
}

static bool are_clients_done(void) {
    for (unsigned i = 0; i < setting->clients; i++)
        if (!states[setting->servers + i].is_done)
            return false;
    return true;
}

// Returns false if the program fails.
static bool run_once(int program) {
    char name[16], port[] = "7471", number[8], endless[] = "--endless",
                   *argv[3 + 2 * SERVERS_MAX] = {name};
    int argc = 1;
    struct state *const state = &states[program];
    *state = (struct state){.signals = -1, .is_asked_to_stop = state->is_asked_to_stop};
    snprintf(name, sizeof(name), "%d", program);
    snprintf(number, sizeof(number), "%u",
             is_untrusted(program) ? (unsigned)form : number_of(program));
    if (setting->is_endless && !is_server(program))
        argv[argc++] = endless;
    for (unsigned i = 0; i < (is_server(program) ? 1 : setting->servers); i++) {
        argv[argc++] = is_server(program) ? addresses[program] : addresses[i];
        argv[argc++] = port;
    }
    if (!is_server(program) && (!is_untrusted(program) || form))
        argv[argc++] = number;
    if (setting->is_damaged && program == 0)
        argv[argc++] = file;
    const int end = setjmp(state->end);
    if (end == 0)
        run_module(&modules[program], argc, argv);
    return end == 1;
}

// An operator starts a program again that has failed, by a fault that ends its process, and
// stops the servers at the end.
static int run_program(void *argument) {
    const int program = *(const int *)argument;
    if (!are_clients_done()) {
        if (!run_once(program)) {
            char fault[32];
            snprintf(fault, sizeof(fault), "kill host%d for 1s", program + 1);
            (void)rdma_sim_fault(fault);
        }
        states[program].is_done = true;
    }
    for (unsigned i = 0; i < setting->servers && are_clients_done(); i++)
        if (!states[i].is_asked_to_stop) {
            states[i].is_asked_to_stop = true;
            if (states[i].signals >= 0)
                eventfd_write(states[i].signals, 1);
        }
    return EXIT_SUCCESS;
}

static const char *check(void *argument) {
    (void)argument;
    return mistake_at_end();
}

static bool run(char *argv[]) {
    static int numbers[PROGRAMS_MAX];
    static uint64_t words[SERVERS_MAX]; // so that power fails
    const unsigned count = setting->servers + setting->clients;
    struct rdma_sim_program programs[PROGRAMS_MAX];
    struct rdma_sim_memory memories[SERVERS_MAX];
    char names[PROGRAMS_MAX][16];
    fill_store();
    for (unsigned i = 0; i < count; i++) {
        const bool is_first = setting->first_client && i == setting->servers;
        modules[i] = load_module(is_first               ? setting->first_client
                                 : i < setting->servers ? "15-block-mover-server"
                                                        : "15-block-mover-client");
        numbers[i] = (int)i;
        states[i].signals = -1;
        snprintf(addresses[i], sizeof(addresses[i]), "10.77.0.%u", i + 1);
        snprintf(names[i], sizeof(names[i]), i < setting->servers ? "server%u" : "client%u",
                 i < setting->servers ? i + 1 : i - setting->servers + 1);
        programs[i] = (struct rdma_sim_program){i + 1, run_program, &numbers[i], names[i]};
    }
    for (unsigned i = 0; i < setting->servers; i++)
        memories[i] = (struct rdma_sim_memory){i + 1, &words[i], sizeof(words[i]), 0};
    const struct rdma_sim_test test = {
        .options = {.hosts = count, .device = chosen->device},
        .programs = programs,
        .program_count = count,
        .check = check,
        .schedules = chosen->schedules,
        .faults = chosen->faults,
        .search = chosen->search,
        .memories = memories,
        .memory_count = setting->servers,
        .flags = RDMA_SIM_TEST_RECOVERS | (setting->first_client ? 0 : RDMA_SIM_TEST_LEAKS)};
    const int fd = memfd_create("store", 0);
    if (fd < 0 || ftruncate(fd, FILE_SIZE))
        return false;
    snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
    return explore_and_print(&test, 2, argv);
}

int main(int argc, char *argv[]) {
    for (size_t i = 0; argc > 2 && i < sizeof(settings) / sizeof(*settings); i++)
        for (size_t k = 0; k < sizeof(configurations) / sizeof(*configurations); k++)
            if (is_name_of(settings[i].name, argv[1], &form) &&
                !strcmp(argv[2], configurations[k].name)) {
                setting = &settings[i];
                chosen = &configurations[k];
                return run(argv) ? EXIT_SUCCESS : EXIT_FAILURE;
            }
    fprintf(stderr, "usage: block_mover SETTING CONFIGURATION [SCHEDULES [SEED]]\n");
    return EXIT_FAILURE;
}
