// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// examples_test.c -- runs the programs of examples as they are: without a fault each of them
// succeeds with the right data, and data that one reports as persistent survives every later
// power failure
//
// examples EXAMPLE CONFIGURATION [SCHEDULES [SEED]]

#include "common.h"
#include "modules.h"

#include <libpmem2.h>
#include <rdma-sim.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CLIENTS 2     // that are served, one after the other
#define EVERY 1000000 // schedules: their number is limited otherwise
#define BLOCKS_MAX 4

enum { SERVER, CLIENT, PROGRAMS };

static const struct example {
    const char *name, *modules;
    unsigned number;
    // Persistent memory: what the program prints once this many blocks in it are persistent.
    const char *claim;
    int owner; // of the file
    size_t blocks;
    bool has_direct_write;
} examples[] = {
    {.name = "connection", .modules = "01-connection"},
    {.name = "read", .modules = "02-read-to-volatile"},
    {.name = "read-persistent",
     .modules = "03-read-to-persistent",
     .number = 3,
     .claim = "into persistent memory, all right",
     .owner = CLIENT,
     .blocks = 2},
    {.name = "write",
     .modules = "04-write-to-persistent",
     .number = 4,
     .claim = "arrived in persistent memory",
     .owner = SERVER,
     .blocks = 1},
    {.name = "flush",
     .modules = "05-flush-to-persistent",
     .number = 5,
     .claim = "they are persistent",
     .owner = SERVER,
     .blocks = 1,
     .has_direct_write = true},
    // The server has no file.
    {.name = "flush-plain", .modules = "05-flush-to-persistent"},
};

static const struct configuration {
    const char *name, *device, *platform;
    unsigned schedules;
    const char *faults, *search;
    bool has_no_effect; // the faults: no program may fail
} configurations[] = {
    {"native", "rxe", "cpu-flush", 1000, "all", "mixed", false},
    {"emulated", "mlx5", "flush-only", 200, "all", "mixed", false},
    {"exhaustive", "rxe", "cpu-flush", EVERY, "power-off,kill,cut,refuse", "exhaustive:1",
     false},
    {"bonds", "rxe", "cpu-flush", EVERY, "addr-change", "exhaustive:1", true},
};

static const struct example *example;
static const struct configuration *chosen;
static main_function mains[PROGRAMS];
static char bytes[BLOCKS_MAX * BLOCK_SIZE] __attribute__((aligned(64))), file[32];
static char wrong[200]; // the first mistake
static bool is_claimed;
static unsigned listened, served, ended; // servers, and their clients
static unsigned starts, known[PROGRAMS]; // of the owner, now and at the start of a program

static void report(const char *what) {
    if (!*wrong)
        snprintf(wrong, sizeof(wrong), "%s", what);
}

static bool has_data(void) {
    for (size_t i = 0; i < example->blocks; i++) {
        char line[64];
        for (size_t done = 0; done < BLOCK_SIZE; done += 32) {
            snprintf(line, sizeof(line), "librpma example %02u, line %06zu\n", example->number,
                     (i * BLOCK_SIZE + done) / 32 + 1);
            if (memcmp(bytes + i * BLOCK_SIZE + done, line, 32) != 0)
                return false;
        }
    }
    return true;
}

// ---- what the programs call ----------------------------------------------------------------

static void handle_line(const char *line) {
    if (strstr(line, "(null)"))
        report("a program prints a NULL string");
    if (strstr(line, "server: listening")) {
        listened = served + 1;
        if (example->claim && example->owner == SERVER && has_data())
            report("the server has the data before a client writes it");
    }
    // A line of a client does not concern a server that was started again.
    const int program = strncmp(line, "server", strlen("server")) == 0 ? SERVER : CLIENT;
    if (!example->claim || !strstr(line, example->claim) || known[program] != starts)
        return;
    is_claimed = true;
    if (!has_data() || rdma_sim_check_persistent(bytes, example->blocks * BLOCK_SIZE))
        report("data that a program reported as persistent is not");
}

__attribute__((format(printf, 1, 2))) int __wrap_printf(const char *format, ...);
int __wrap_printf(const char *format, ...) {
    char line[1024];
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(line, sizeof(line), format, values);
    va_end(values);
    handle_line(line);
    fputs(line, stdout);
    return length;
}

static void persist(const void *ptr, size_t size) {
    if (rdma_sim_persist(ptr, size))
        abort();
}

// The file of a program is a descriptor of this one. Its mapping is the memory of the test.
int pmem2_source_from_fd(struct pmem2_source **source, int fd) {
    (void)source, (void)fd;
    return 0;
}

int pmem2_config_new(struct pmem2_config **config) {
    (void)config;
    return 0;
}

int pmem2_config_set_required_store_granularity(struct pmem2_config *config,
                                                enum pmem2_granularity granularity) {
    (void)config, (void)granularity;
    return 0;
}

int pmem2_map_new(struct pmem2_map **map, const struct pmem2_config *config,
                  const struct pmem2_source *source) {
    (void)config, (void)source;
    *map = (struct pmem2_map *)bytes;
    return 0;
}

int pmem2_config_delete(struct pmem2_config **config) {
    (void)config;
    return 0;
}

int pmem2_source_delete(struct pmem2_source **source) {
    (void)source;
    return 0;
}

int pmem2_map_delete(struct pmem2_map **map) {
    (void)map;
    return 0;
}

void *pmem2_map_get_address(struct pmem2_map *map) {
    return map;
}

size_t pmem2_map_get_size(struct pmem2_map *map) {
    (void)map;
    return sizeof(bytes);
}

enum pmem2_granularity pmem2_map_get_store_granularity(struct pmem2_map *map) {
    (void)map;
    return PMEM2_GRANULARITY_CACHE_LINE;
}

pmem2_persist_fn pmem2_get_persist_fn(struct pmem2_map *map) {
    (void)map;
    return persist;
}

const char *pmem2_errormsg(void) {
    return "a failure of libpmem2";
}

// ---- the programs --------------------------------------------------------------------------

static int run_main(int program) {
    char name[] = "example", address[] = "10.77.0.1", port[] = "7471";
    char option[] = "--direct-write", *argv[6] = {name};
    int argc = 1;
    const bool has_file = example->claim && program == example->owner;
    if (has_file && example->has_direct_write)
        argv[argc++] = option;
    argv[argc++] = address;
    argv[argc++] = port;
    if (has_file) {
        argv[argc++] = file;
        starts++;
        is_claimed = false; // the program initializes the memory
    }
    known[program] = starts;
    return mains[program](argc, argv);
}

static int run_server(void *argument) {
    (void)argument;
    for (; served < CLIENTS; served++) {
        if (run_main(SERVER))
            return EXIT_FAILURE;
        if (example->claim && example->owner == SERVER && !has_data())
            report("the server succeeds without the data");
    }
    return EXIT_SUCCESS;
}

static int run_client(void *argument) {
    (void)argument;
    for (; ended < CLIENTS; ended++) {
        for (unsigned tries = 0; listened <= ended; tries++)
            if (tries == 100 || rdma_sim_advance(100000000))
                return EXIT_FAILURE;
        if (run_main(CLIENT))
            return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}

static const char *check(void *argument) {
    (void)argument;
    if (is_claimed && !has_data())
        report("data that a program reported as persistent is lost");
    if (chosen->has_no_effect && (served < CLIENTS || ended < CLIENTS))
        report("a program has failed");
    return *wrong ? wrong : NULL;
}

static bool run(uint64_t schedules, uint64_t seed) {
    const struct rdma_sim_program programs[] = {{1, run_server, NULL, "server"},
                                                {2, run_client, NULL, "client"}};
    const struct rdma_sim_memory memory = {example->owner == SERVER ? 1 : 2, bytes,
                                           sizeof(bytes), 0};
    const struct rdma_sim_test test = {.options = {.device = chosen->device, .seed = seed},
                                       .programs = programs,
                                       .program_count = PROGRAMS,
                                       .check = check,
                                       .schedules = schedules ? schedules : chosen->schedules,
                                       .faults = chosen->faults,
                                       .search = chosen->search,
                                       .memories = &memory,
                                       .memory_count = 1, // so that power fails
                                       .platform = chosen->platform,
                                       .flags = RDMA_SIM_TEST_LEAKS};
    char module[64], name[64];
    for (int i = 0; i < PROGRAMS; i++) {
        snprintf(module, sizeof(module), "%s-%s", example->modules,
                 i == SERVER ? "server" : "client");
        mains[i] = find_main(module);
    }
    const int fd = memfd_create("pmem", 0);
    if (fd < 0 || ftruncate(fd, sizeof(bytes)))
        return false;
    snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
    snprintf(name, sizeof(name), "%s %s", example->name, chosen->name);
    return explore_and_print(&test, name);
}

int main(int argc, char *argv[]) {
    for (size_t i = 0; argc > 2 && i < sizeof(examples) / sizeof(*examples); i++)
        for (size_t k = 0; k < sizeof(configurations) / sizeof(*configurations); k++)
            if (!strcmp(argv[1], examples[i].name) &&
                !strcmp(argv[2], configurations[k].name)) {
                example = &examples[i];
                chosen = &configurations[k];
                return run(argc > 3 ? strtoull(argv[3], NULL, 10) : 0,
                           argc > 4 ? strtoull(argv[4], NULL, 10) : 0)
                           ? EXIT_SUCCESS
                           : EXIT_FAILURE;
            }
    fprintf(stderr, "usage: examples EXAMPLE CONFIGURATION [SCHEDULES [SEED]]\n");
    return EXIT_FAILURE;
}
