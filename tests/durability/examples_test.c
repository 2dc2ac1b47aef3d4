// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// examples_test.c -- runs the programs of examples as they are: without a fault each of them
// succeeds with the right data, and data that one reports as persistent survives every later
// power failure
//
// examples EXAMPLE CONFIGURATION [SCHEDULES [SEED]]

#include "calls.h"
#include "common.h"
#include "modules.h"

#include <endian.h>
#include <rdma-sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EVERY 1000000 // schedules: their number is limited otherwise
#define CLIENTS_MAX 3
#define LOG_ENTRIES 64 // of example 07
#define BLOCKS_MAX (1 + LOG_ENTRIES)
#define BLOCKS_FILLED 4 // at most, by one call of fill_block()

enum { SERVER, CLIENT, WATCHER, PROGRAMS_MAX = 1 + CLIENTS_MAX };

static const struct example {
    const char *name, *modules;
    unsigned number;
    const char *option; // its variant
    // The clients that a server serves at once, and only their number has the variant. 0: two
    // clients, each with a server of its own.
    unsigned clients;
    size_t blocks;     // of the file
    int owner;         // of the file
    const char *claim; // what a program prints once the file is full and persistent
    bool has_direct_write, has_log;
} examples[] = {
    {.name = "connection", .modules = "01-connection"},
    {.name = "read", .modules = "02-read-to-volatile"},
    {.name = "read-persistent",
     .modules = "03-read-to-persistent",
     .number = 3,
     .blocks = 2,
     .owner = CLIENT,
     .claim = "into persistent memory, all right"},
    {.name = "write",
     .modules = "04-write-to-persistent",
     .number = 4,
     .blocks = 1,
     .claim = "arrived in persistent memory"},
    {.name = "flush",
     .modules = "05-flush-to-persistent",
     .number = 5,
     .blocks = 1,
     .claim = "they are persistent",
     .has_direct_write = true},
    {.name = "flush-plain", .modules = "05-flush-to-persistent"},
    {.name = "connections", .modules = "06-multiple-connections", .clients = 3},
    {.name = "connections-shared",
     .modules = "06-multiple-connections",
     .clients = 3,
     .option = "--shared-channel"},
    {.name = "atomic-write",
     .modules = "07-atomic-write",
     .blocks = BLOCKS_MAX,
     .has_direct_write = true,
     .has_log = true},
    {.name = "atomic-write-plain", .modules = "07-atomic-write"},
    {.name = "ping-pong", .modules = "08-messages-ping-pong"},
    {.name = "ping-pong-shared",
     .modules = "08-messages-ping-pong",
     .option = "--shared-receive-queue"},
    {.name = "gpspm",
     .modules = "09-flush-to-persistent-GPSPM",
     .number = 9,
     .blocks = 4,
     .claim = "the server has persisted them"},
    {.name = "gpspm-shared",
     .modules = "09-flush-to-persistent-GPSPM",
     .number = 9,
     .option = "--shared-channel",
     .blocks = 4,
     .claim = "the server has persisted them"},
    // Then the FORM of the untrusted client.
    {.name = "gpspm-untrusted-",
     .modules = "09-flush-to-persistent-GPSPM",
     .number = 9,
     .clients = 1,
     .blocks = 4},
    {.name = "send-imm", .modules = "10-send-with-imm"},
    {.name = "write-imm", .modules = "11-write-with-imm"},
    {.name = "receive-cq", .modules = "12-receive-completion-queue"},
    {.name = "receive-cq-shared",
     .modules = "12-receive-completion-queue",
     .option = "--shared-channel"},
    {.name = "shared-receives", .modules = "13-messages-ping-pong-srq", .clients = 3},
};

static const struct configuration {
    const char *name, *device, *platform;
    unsigned schedules;
    const char *faults, *search;
    bool has_no_effect; // the faults: no program may fail
} configurations[] = {
    {"native", "rxe", "cpu-flush", 1000, "all", "mixed", false},
    {"emulated", "mlx5", "flush-only", 200, "all", "mixed", false},
    {"iwarp", "siw", "flush-only", 200, "all", "mixed", false},
    {"exhaustive", "rxe", "cpu-flush", EVERY, "power-off,kill,cut,refuse", "exhaustive:1",
     false},
    {"bonds", "rxe", "cpu-flush", EVERY, "addr-change", "exhaustive:1", true},
    {"faultless", "rxe", "cpu-flush", 20, "none", "mixed", true},
};

static char file_bytes[BLOCKS_MAX * BLOCK_SIZE] __attribute__((aligned(64)));
size_t file_size;

static const struct example *example;
static const struct configuration *chosen;
static int form;              // of the untrusted client
static unsigned clients;      // that run at once
static unsigned server_count; // servers that are started, one after the other
static struct module modules[PROGRAMS_MAX];
static char file[32];
static bool is_claimed;
static unsigned listened, ended[PROGRAMS_MAX]; // servers that have listened, successes
static unsigned starts, known[PROGRAMS_MAX];   // of the owner, now and at a program's start

// What fill_block() of the examples writes for a number.
static char blocks[LOG_ENTRIES][BLOCKS_FILLED * BLOCK_SIZE];

static void fill_blocks(void) {
    char line[64];
    for (unsigned number = 0; number < LOG_ENTRIES; number++)
        for (size_t done = 0; done < sizeof(blocks[number]); done += 32) {
            snprintf(line, sizeof(line), "librpma example %02u, line %06zu\n", number,
                     done / 32 + 1);
            memcpy(blocks[number] + done, line, 32);
        }
}

static bool has_data(void) {
    return memcmp(file_bytes, blocks[example->number], file_size) == 0;
}

// ---- example 07 ----------------------------------------------------------------------------

static unsigned completions;         // that the client has taken
static uint64_t read_tail, appended; // when the client began; entries that a client appended

static uint64_t tail(void) {
    uint64_t count;
    memcpy(&count, file_bytes, sizeof(count));
    return le64toh(count);
}

static bool has_signature(void) {
    return memcmp(file_bytes + 8, "RPMALOG1", 8) == 0;
}

// The entries before a visible tail must be complete, and must remain so. A power failure that
// leaves a new signature must not leave an older tail.
static void check_entries(bool is_program) {
    if (example->has_log && is_program && has_signature() &&
        rdma_sim_check_persistent(file_bytes + 8, 8) &&
        rdma_sim_check_persistent(file_bytes, 8))
        report("the signature can be persistent without its tail");
    for (uint64_t i = 0; example->has_log && has_signature() && i < tail(); i++) {
        const size_t offset = (i + 1) * BLOCK_SIZE;
        if (i == LOG_ENTRIES || memcmp(file_bytes + offset, blocks[i], BLOCK_SIZE) ||
            (is_program && rdma_sim_check_persistent(file_bytes + offset, BLOCK_SIZE))) {
            report("an entry before the tail is not persistent");
            return;
        }
    }
}

// Each completion of a client but the first one, of its read, is that of an entry's last flush.
static void count_entry(void) {
    if (completions++ == 0) {
        read_tail = tail();
        return;
    }
    if (appended < read_tail + completions - 1)
        appended = read_tail + completions - 1;
    if (!has_signature() || tail() < appended || rdma_sim_check_persistent(file_bytes, 16))
        report("the tail after an appended entry is not persistent");
}

static void check_server_line(const char *line) {
    unsigned before, after;
    if (sscanf(line, "server: the log in persistent memory had %u entries and has %u", &before,
               &after) == 2 &&
        (before >= after || after < appended))
        report("the server accepts another log");
}

char *memory_of(int program) {
    (void)program;
    return file_bytes;
}

// ---- what the programs call ----------------------------------------------------------------

void handle_line(int program, const char *line) {
    if (strstr(line, "(null)"))
        report("a program prints a NULL string");
    if (strstr(line, "server: listening")) {
        listened = ended[SERVER] + 1;
        if (example->claim && example->owner == SERVER && has_data())
            report("the server has the data before a client writes it");
    }
    check_entries(true);
    check_server_line(line);
    // A line of a client does not concern a server that was started again.
    if (!example->claim || !strstr(line, example->claim) || known[program] != starts)
        return;
    is_claimed = true;
    if (!has_data() || rdma_sim_check_persistent(file_bytes, file_size))
        report("data that a program reported as persistent is not");
}

void handle_completion(int program, const struct ibv_wc *wc) {
    if (wc->status != IBV_WC_SUCCESS || !example->has_log || program == SERVER)
        return;
    count_entry();
    check_entries(true);
}

void handle_persist(int program, const void *ptr, size_t size) {
    (void)program, (void)ptr, (void)size;
    check_entries(true);
}

int handle_end(int program, int status, const char *error) {
    if (status && !*error)
        report("a program fails without an error message");
    if (form && program == SERVER) {
        if (!strstr(error, "requests memory that it was not offered"))
            report("the server does not refuse an untrusted client");
        ended[SERVER]++;
        return EXIT_SUCCESS;
    }
    // Only a failed call of its own ends a server of several clients.
    if (status && program == SERVER && example->clients && !strstr(error, "rpma_") &&
        !strstr(error, "no RDMA device"))
        report("a client ends the server");
    return status;
}

// ---- the programs --------------------------------------------------------------------------

static int run_main(int program) {
    char name[] = {(char)('0' + program), '\0'}, address[] = "10.77.0.1", port[] = "7471";
    char direct_write[] = "--direct-write", option[32], number[8], *argv[8] = {name};
    int argc = 1;
    const bool has_file = example->blocks > 0 && program == example->owner;
    if (example->option && (program == SERVER || !example->clients)) {
        snprintf(option, sizeof(option), "%s", example->option);
        argv[argc++] = option;
    }
    if (has_file && example->has_direct_write)
        argv[argc++] = direct_write;
    argv[argc++] = address;
    argv[argc++] = port;
    if (form ? program == CLIENT : example->clients > 0) {
        snprintf(number, sizeof(number), "%d",
                 form                ? form
                 : program == SERVER ? (int)example->clients
                                     : program);
        argv[argc++] = number;
    }
    if (has_file) {
        argv[argc++] = file;
        starts++;
        is_claimed = false; // the program initializes the memory
    }
    if (program != SERVER)
        completions = 0;
    known[program] = starts;
    return run_module(&modules[program], argc, argv);
}

static int run_server(void *argument) {
    (void)argument;
    for (; ended[SERVER] < server_count; ended[SERVER]++) {
        if (run_main(SERVER))
            return EXIT_FAILURE;
        if (example->claim && example->owner == SERVER && !has_data())
            report("the server succeeds without the data");
    }
    return EXIT_SUCCESS;
}

static int run_client(void *argument) {
    const int program = *(const int *)argument;
    for (; ended[program] < server_count; ended[program]++) {
        for (unsigned tries = 0; listened <= ended[program]; tries++)
            if (tries == 100 || rdma_sim_advance(100000000))
                return EXIT_FAILURE;
        if (run_main(program))
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

// Checks the log while an operation is late: other ones may have passed it.
static int watch(void *argument) {
    (void)argument;
    for (unsigned i = 0; i < 40 && ended[SERVER] < server_count; i++) {
        if (rdma_sim_advance(50000000))
            return EXIT_FAILURE;
        check_entries(true);
    }
    return EXIT_SUCCESS;
}

static const char *check(void *argument) {
    (void)argument;
    if (is_claimed && !has_data())
        report("data that a program reported as persistent is lost");
    check_entries(false);
    if (appended && (!has_signature() || tail() < appended))
        report("an appended entry is lost");
    for (unsigned program = 0; chosen->has_no_effect && program <= clients; program++)
        if (ended[program] < server_count)
            report("a program has failed");
    return first_mistake();
}

static bool run(char *argv[]) {
    static int numbers[PROGRAMS_MAX];
    struct rdma_sim_program programs[PROGRAMS_MAX] = {
        {1, run_server, NULL, "server"}, [WATCHER] = {1, watch, NULL, "watcher"}};
    clients = example->clients ? example->clients : 1;
    server_count = example->clients ? 1 : 2;
    file_size = (example->blocks ? example->blocks : 1) * BLOCK_SIZE;
    fill_blocks();
    if (example->has_log)
        memcpy(file_bytes, &(uint64_t){htole64(2)}, 8); // data that resembles a tail
    for (int i = 0; i <= (int)clients; i++) {
        char module[64];
        const bool is_untrusted = form && i != SERVER;
        snprintf(module, sizeof(module), "%s-%s", is_untrusted ? "untrusted" : example->modules,
                 i == SERVER ? "server" : "client");
        modules[i] = load_module(module);
        numbers[i] = i;
        if (i != SERVER)
            programs[i] = (struct rdma_sim_program){(unsigned)i + 1, run_client, &numbers[i],
                                                    clients > 1 ? NULL : "client"};
    }
    const struct rdma_sim_memory memory = {example->owner == SERVER ? 1 : 2, file_bytes,
                                           file_size, 0};
    const struct rdma_sim_test test = {
        .options = {.hosts = 1 + clients, .device = chosen->device},
        .programs = programs,
        .program_count = 1 + clients + example->has_log,
        .check = check,
        .schedules = chosen->schedules,
        .faults = chosen->faults,
        .search = chosen->search,
        .memories = &memory,
        .memory_count = 1, // also without a file, so that power fails
        .platform = chosen->platform,
        .flags = form ? 0 : RDMA_SIM_TEST_LEAKS};
    const int fd = memfd_create("pmem", 0);
    if (fd < 0 || ftruncate(fd, (off_t)file_size))
        return false;
    snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
    return explore_and_print(&test, 2, argv);
}

int main(int argc, char *argv[]) {
    for (size_t i = 0; argc > 2 && i < sizeof(examples) / sizeof(*examples); i++)
        for (size_t k = 0; k < sizeof(configurations) / sizeof(*configurations); k++)
            if (is_name_of(examples[i].name, argv[1], &form) &&
                !strcmp(argv[2], configurations[k].name)) {
                example = &examples[i];
                chosen = &configurations[k];
                return run(argv) ? EXIT_SUCCESS : EXIT_FAILURE;
            }
    fprintf(stderr, "usage: examples EXAMPLE CONFIGURATION [SCHEDULES [SEED]]\n");
    return EXIT_FAILURE;
}
