// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operations_test.c -- checks the programs in operations/ by a plain model of memory: a word
// that a client reported as safe has that value after each power failure, until the client
// changes it, and the server receives the messages of a client, each once, in their order
//
// operations CONFIGURATION [SCHEDULES [SEED]]

#include "common.h"
#include "modules.h"
#include "operations/operations.h"
#include "report.h"

#include <rdma-sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS 2     // that are served, one after the other
#define EVERY 1000000 // schedules: their number is limited otherwise
#define WORDS (AREAS * WORDS_OF_AREA)

static const struct configuration {
    const char *name, *modules, *device, *platform;
    bool is_emulated;
    unsigned schedules;
    const char *faults, *search;
    bool has_no_effect;   // the faults: no program may fail
    bool keeps_completed; // the faults: no completion is lost
} configurations[] = {
    {.name = "native", .modules = "operations", .device = "rxe", .schedules = 800},
    {.name = "emulated",
     .modules = "operations",
     .device = "mlx5",
     .platform = "flush-only",
     .is_emulated = true,
     .schedules = 700},
    // With librpma as on headers without native operations. Failed completions of this device
    // have an opcode.
    {.name = "old",
     .modules = "operations-old",
     .device = "hns",
     .platform = "flush-only",
     .is_emulated = true,
     .schedules = 300},
    {.name = "exhaustive",
     .modules = "operations",
     .device = "rxe",
     .schedules = EVERY,
     .faults = "power-off,kill,cut,refuse",
     .search = "exhaustive:1"},
    {.name = "refusals",
     .modules = "operations",
     .device = "rxe",
     .schedules = 400,
     .faults = "refuse,doorbell",
     .keeps_completed = true},
    {.name = "bonds",
     .modules = "operations",
     .device = "rxe",
     .schedules = 300,
     .faults = "addr-change",
     .has_no_effect = true,
     .keeps_completed = true},
};

static const struct configuration *chosen;
static char bytes[OWN + DESCRIPTION_SIZE] __attribute__((aligned(64)));

// The plain model.
static uint64_t words[WORDS];
static bool is_safe[WORDS];
// A word is safe as soon as another one has its value.
static struct {
    unsigned word, other;
    uint64_t value, other_value;
} orders[WORDS];
static unsigned order_count;
static struct message sent[AREAS][MESSAGES];
static unsigned sent_count[AREAS];

static struct {
    char bytes[PRIVATE_DATA_SIZE];
    bool by_server;
    size_t size;
} private_data[2 * AREAS];
static unsigned private_data_count;

static bool is_listening;
static unsigned served, started; // clients
static unsigned area, received;  // of the client of the server

static void persist(const void *ptr, size_t size) {
    if (rdma_sim_persist(ptr, size))
        abort();
}

struct memory server_memory = {
    .ptr = bytes, .size = sizeof(bytes), .is_pmem = true, .persist = persist, .fd = -1};

static bool has_value(unsigned word, uint64_t value) {
    return memcmp(bytes + word * sizeof(value), &value, sizeof(value)) == 0;
}

// `check`: of a word that is safe.
static void check_words(int (*check)(const void *, size_t)) {
    for (unsigned i = 0; i < WORDS; i++)
        if (is_safe[i] && (!has_value(i, words[i]) ||
                           (check && check(bytes + i * sizeof(*words), sizeof(*words)))))
            report("word %u was reported as safe, and is not", i);
    for (unsigned i = 0; i < order_count; i++)
        if (has_value(orders[i].other, orders[i].other_value) &&
            (!has_value(orders[i].word, orders[i].value) ||
             (check && check(bytes + orders[i].word * sizeof(*words), sizeof(*words)))))
            report("word %u is not safe before word %u is changed", orders[i].word,
                   orders[i].other);
}

void report_changed(unsigned first, unsigned count) {
    unsigned left = 0;
    memset(is_safe + first, false, count * sizeof(*is_safe));
    for (unsigned i = 0; i < order_count; i++)
        if (orders[i].word < first || orders[i].word >= first + count)
            orders[left++] = orders[i];
    order_count = left;
}

void report_ordered(unsigned word, uint64_t value, unsigned other, uint64_t other_value) {
    if (order_count == WORDS)
        abort();
    orders[order_count].word = word;
    orders[order_count].value = value;
    orders[order_count].other = other;
    orders[order_count++].other_value = other_value;
}

void report_safe(unsigned first, unsigned count, const uint64_t *values) {
    memcpy(words + first, values, count * sizeof(*words));
    memset(is_safe + first, true, count * sizeof(*is_safe));
    check_words(rdma_sim_check_persistent);
}

void report_broken(const char *what) {
    report("%s", what);
}

void report_receives(unsigned posted, unsigned completed) {
    if (chosen->keeps_completed && posted != completed)
        report("%u of %u posted receives have completed", completed, posted);
}

void report_listening(void) {
    is_listening = true;
}

void report_client(unsigned number) {
    area = number;
    received = 0;
}

void report_sent(unsigned number, const struct message *message) {
    sent[number][sent_count[number]++] = *message;
}

void report_received(const struct message *message) {
    const struct message *const expected = &sent[area][received];
    if (received++ >= sent_count[area] || message->is_write != expected->is_write ||
        message->size != expected->size || message->imm != expected->imm ||
        message->checksum != expected->checksum)
        report("the server receives another message than the client has sent");
    check_words(rdma_sim_check_persistent);
}

void report_private_data(bool by_server, const struct rpma_conn_private_data *data) {
    if (private_data_count == sizeof(private_data) / sizeof(*private_data))
        abort();
    private_data[private_data_count].by_server = by_server;
    private_data[private_data_count].size = data->len;
    memcpy(private_data[private_data_count++].bytes, data->ptr, data->len);
}

// A program that was killed may have sent other data before.
void check_private_data(bool by_server, const struct rpma_conn_private_data *data) {
    for (unsigned i = 0; i < private_data_count; i++) {
        const size_t size = private_data[i].size;
        const char *const bytes = data->ptr;
        if (private_data[i].by_server == by_server && size <= data->len &&
            memcmp(private_data[i].bytes, bytes, size) == 0 &&
            (size == data->len || (bytes[size] == 0 && !memcmp(bytes + size, bytes + size + 1,
                                                               data->len - size - 1))))
            return;
    }
    report("private data differ from those that the other side has sent");
}

static const char *check(void *argument) {
    (void)argument;
    check_words(NULL);
    if (chosen->has_no_effect && served < CLIENTS)
        report("a program has failed");
    return first_mistake();
}

// ---- the programs --------------------------------------------------------------------------

static struct module server, client;

static int run_server(void *argument) {
    char name[] = "server", option[] = "--direct-write", address[] = "10.77.0.1",
         port[] = "7471";
    (void)argument;
    for (; served < CLIENTS; served++)
        if (run_module(&server, 4, (char *[]){name, option, address, port, NULL}))
            return EXIT_FAILURE;
    return EXIT_SUCCESS;
}

// Each client has another area, also after a restart: the writes of an earlier one may arrive
// later.
static int run_client(void *argument) {
    char name[] = "client", option[] = "--emulated", address[] = "10.77.0.1", port[] = "7471",
         number[8];
    char *const emulated[] = {name, option, address, port, number, NULL}, *const native[] = {
                                                                              name, address,
                                                                              port, number,
                                                                              NULL};
    (void)argument;
    for (unsigned ended = served; ended < CLIENTS; ended++) {
        for (unsigned tries = 0; !is_listening; tries++)
            if (tries == 100 || rdma_sim_advance(100000000))
                return EXIT_FAILURE;
        if (++started == AREAS)
            return EXIT_FAILURE;
        is_listening = false;
        snprintf(number, sizeof(number), "%u", started);
        if (chosen->is_emulated ? run_module(&client, 5, (char **)emulated)
                                : run_module(&client, 4, (char **)native))
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

// Checks the words while a request is late: other ones may have passed it.
static int watch(void *argument) {
    (void)argument;
    for (unsigned i = 0; i < 40 && served < CLIENTS; i++) {
        if (rdma_sim_advance(50000000))
            return EXIT_FAILURE;
        check_words(rdma_sim_check_persistent);
    }
    return EXIT_SUCCESS;
}

static bool run(const struct configuration *configuration, char *argv[]) {
    const struct rdma_sim_program programs[] = {{1, run_server, NULL, "server"},
                                                {2, run_client, NULL, "client"},
                                                {1, watch, NULL, "watcher"}};
    const struct rdma_sim_memory memory = {1, bytes, sizeof(bytes), 0};
    const struct rdma_sim_test test = {
        .options = {.device = configuration->device},
        .programs = programs,
        .program_count = configuration->is_emulated ? 3 : 2, // emulated: requests pass others
        .check = check,
        .schedules = configuration->schedules,
        .faults = configuration->faults ? configuration->faults : "all",
        .search = configuration->search,
        .memories = &memory,
        .memory_count = 1,
        .platform = configuration->platform};
    char module[64];
    chosen = configuration;
    snprintf(module, sizeof(module), "%s-server", configuration->modules);
    server = load_module(module);
    snprintf(module, sizeof(module), "%s-client", configuration->modules);
    client = load_module(module);
    return explore_and_print(&test, 1, argv);
}

int main(int argc, char *argv[]) {
    for (size_t i = 0; i < sizeof(configurations) / sizeof(*configurations); i++)
        if (argc > 1 && strcmp(argv[1], configurations[i].name) == 0)
            return run(&configurations[i], argv) ? EXIT_SUCCESS : EXIT_FAILURE;
    fprintf(stderr, "usage: operations CONFIGURATION [SCHEDULES [SEED]]\n");
    return EXIT_FAILURE;
}
