// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// options.c -- the command line

#include "options.h"

#include "failure.h"
#include "ledger.h"
#include "library.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DURATION_MAX_S 86400

static const char help[] =
    "usage: rpma-perf [--server] [OPTION]... ADDRESS    (ADDRESS is the server's)\n"
    "  -s, --server            serve one client after the other; -1, --once: only one\n"
    "  -p, --port PORT         of the server (7204)\n"
    "  -m, --memory PATH       server: use, and overwrite, a file or a device "
    "DAX\n"
    "      --direct-write      server: states direct write to PATH; see "
    "rpma-perf(1)\n"
    "      --limit BYTES       server: of DRAM, the most that a client gets (1 GiB)\n"
    "  -o, --operation LIST    write, read, flush-visibility, "
    "flush-persistent, send,\n"
    "                          atomic-write, ping-pong, ping-pong-rcq, all "
    "(write)\n"
    "  -b, --size LIST         bytes: 64,4096 or, doubling, 1:65536 (64)\n"
    "  -d, --depth N           operations under way on each connection (1)\n"
    "      --batch N           operations posted by one call (1)\n"
    "      --prepared          make the batches once and post them again and "
    "again\n"
    "  -e, --elements N        pieces of local memory of each operation (1)\n"
    "  -i, --inline BYTES      operations up to this size carry their data "
    "(0)\n"
    "  -c, --connections N     in all, for -t, --threads N (1) on both sides\n"
    "  -D, --duration SECONDS  for each operation and size (3)\n"
    "  -n, --count N           operations of each connection, instead of a "
    "duration\n"
    "  -w, --warmup N          operations of each connection before that "
    "(100)\n"
    "      --poll              look for completions all the time, never wait\n"
    "      --verify            check every byte at its destination\n"
    "      --ledger FILE       record flushed writes, to check them after a power cut\n"
    "      --ring N            with --ledger: places of each connection (65536)\n"
    "  -j, --json              print all settings and results as JSON\n"
    "  -h, --help, -V, --version  print this, or the versions\n";

static const struct option long_options[] = {
    {"server", no_argument, NULL, 's'},
    {"port", required_argument, NULL, 'p'},
    {"memory", required_argument, NULL, 'm'},
    {"direct-write", no_argument, NULL, 'W'},
    {"limit", required_argument, NULL, 'M'},
    {"once", no_argument, NULL, '1'},
    {"operation", required_argument, NULL, 'o'},
    {"size", required_argument, NULL, 'b'},
    {"depth", required_argument, NULL, 'd'},
    {"batch", required_argument, NULL, 'A'},
    {"prepared", no_argument, NULL, 'R'},
    {"elements", required_argument, NULL, 'e'},
    {"inline", required_argument, NULL, 'i'},
    {"connections", required_argument, NULL, 'c'},
    {"threads", required_argument, NULL, 't'},
    {"duration", required_argument, NULL, 'D'},
    {"count", required_argument, NULL, 'n'},
    {"warmup", required_argument, NULL, 'w'},
    {"poll", no_argument, NULL, 'L'},
    {"verify", no_argument, NULL, 'Y'},
    {"ledger", required_argument, NULL, 'G'},
    {"ring", required_argument, NULL, 'N'},
    {"json", no_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};
// Long options without a short one have capital letters that are missing here.
static const char short_options[] = "sp:m:1o:b:d:e:i:c:t:D:n:w:jhV";

#define refuse(...)            \
    do {                       \
        complain(__VA_ARGS__); \
        exit(EXIT_USAGE);      \
    } while (0)

static void end_with_versions(void) {
    print_versions("rpma-perf");
    exit(EXIT_SUCCESS);
}

static const char *name_of(int letter) {
    const struct option *option = long_options;
    while (option->name && option->val != letter)
        option++;
    return option->name;
}

static uint64_t number(int letter, const char *text, uint64_t min, uint64_t max) {
    uint64_t value;
    if (!parse_number(text, min, max, &value))
        refuse("--%s takes a number from %lu to %lu, not \"%s\"", name_of(letter),
               (unsigned long)min, (unsigned long)max, text);
    return value;
}

// Reads a setting of the plan; an option without argument sets it to 1.
static void read_setting(struct options *options, int letter) {
    for (size_t i = 0; i < setting_count; i++)
        if (!strcmp(settings[i].name, name_of(letter)))
            *plan_field(&options->plan, &settings[i]) =
                optarg ? number(letter, optarg, settings[i].min, settings[i].max) : 1;
}

static void add_operation(struct options *options, const char *name) {
    bool is_all = !strcmp(name, "all");
    options->takes_all |= is_all;
    size_t before = options->operation_count;
    for (size_t i = 0; i < OPERATION_COUNT; i++)
        if (is_all || !strcmp(operations[i].name, name)) {
            if (options->operation_count == OPERATION_COUNT)
                refuse("--operation names more operations than there are");
            options->operations[options->operation_count++] = i;
        }
    if (options->operation_count == before)
        refuse("--operation: there is no operation \"%s\"; --help lists them", name);
}

static void add_size(struct options *options, uint64_t size) {
    if (options->size_count == SIZES_MAX)
        refuse("--size takes at most %d sizes", SIZES_MAX);
    options->sizes[options->size_count++] = size;
}

// Adds one size, or all sizes of a sweep from the first to the last.
static void add_sizes(struct options *options, char *text) {
    char *last = strchr(text, ':');
    if (last)
        *last++ = '\0';
    uint64_t size = number('b', text, 1, SIZE_MAX_OF_OPERATION);
    uint64_t greatest = last ? number('b', last, size, SIZE_MAX_OF_OPERATION) : size;
    for (; size <= greatest; size *= 2)
        add_size(options, size);
}

// Calls add for each part of a list; add refuses an empty part like any bad value.
static void read_list(struct options *options, const char *text,
                      void (*add)(struct options *options, char *part)) {
    char *copy = strdup(text), *rest = copy, *part;
    if (!copy)
        refuse("out of memory");
    while ((part = strsep(&rest, ",")))
        add(options, part);
    free(copy);
}

static void add_operation_of_list(struct options *options, char *part) {
    add_operation(options, part);
}

static uint64_t nanoseconds(const char *text) {
    char *end;
    double seconds = strtod(text, &end);
    if (*text < '0' || *text > '9' || *end || !(seconds >= 0.001 && seconds <= DURATION_MAX_S))
        refuse("--duration takes seconds from 0.001 to %d, not \"%s\"", DURATION_MAX_S, text);
    return (uint64_t)(seconds * 1e9);
}

// Reads the operations, the sizes and the limits.
static void read_amount(struct options *options, int letter) {
    switch (letter) {
    case 'o':
        read_list(options, optarg, add_operation_of_list);
        break;
    case 'b':
        read_list(options, optarg, add_sizes);
        break;
    case 'D':
        options->limits.duration_ns = nanoseconds(optarg);
        break;
    case 'n':
        options->limits.count = number(letter, optarg, 1, UINT64_C(1) << 40);
        break;
    case 'w':
        options->limits.warmup = number(letter, optarg, 0, UINT64_C(1) << 40);
        break;
    default:
        read_setting(options, letter);
    }
}

static void read_option(struct options *options, int letter) {
    switch (letter) {
    case 's':
        options->is_server = true;
        break;
    case 'p':
        (void)number(letter, optarg, 1, 65535);
        options->port = optarg;
        break;
    case 'm':
        options->memory = optarg;
        break;
    case 'W':
        options->direct_write = true;
        break;
    case 'M':
        options->limit = number(letter, optarg, SLOT_ALIGNMENT, UINT64_C(1) << 40);
        break;
    case '1':
        options->once = true;
        break;
    case 'G':
        options->ledger = optarg;
        break;
    case 'j':
        options->json = true;
        break;
    case 'h':
        fputs(help, stdout);
        exit(EXIT_SUCCESS);
    case 'V':
        end_with_versions();
        break;
    default:
        read_amount(options, letter);
    }
}

// The server takes few options, because the client sends it all settings of a load.
static bool is_for_server(int letter) {
    return strchr("sp1mMW", letter) != NULL;
}
static bool is_for_client(int letter) {
    return !strchr("s1mMW", letter);
}

static void check_side(const struct options *options, const bool *is_given) {
    for (const struct option *option = long_options; option->name; option++) {
        if (!is_given[option->val])
            continue;
        if (options->is_server && !is_for_server(option->val))
            refuse("--%s is for the client: the server takes it from there", option->name);
        if (!options->is_server && !is_for_client(option->val))
            refuse("--%s is for the server: give --server, too", option->name);
    }
    if (options->direct_write && !options->memory)
        refuse("--direct-write states something about persistent memory: give --memory, too");
    if (options->memory && is_given['M'])
        refuse("--limit is for DRAM: with --memory, the size of PATH is the limit");
}

// An atomic write has one size, ATOMIC_SIZE.
size_t options_size_count(const struct options *options, size_t operation) {
    return operations[options->operations[operation]].is_atomic ? 1 : options->size_count;
}

void options_choose(struct options *options, size_t operation, size_t size) {
    bool is_atomic = operations[options->operations[operation]].is_atomic;
    options->plan.operation = options->operations[operation];
    options->plan.size = is_atomic ? ATOMIC_SIZE : options->sizes[size];
}

// A ledger is of one load, which goes on until the power of the server is cut.
static void complete_for_ledger(struct options *options, const bool *is_given) {
    if (is_given['j'])
        refuse("--json is for measurements, not for --ledger");
    if (!options->operation_count)
        add_operation(options, "flush-persistent");
    if (!options->size_count)
        add_size(options, 4096);
    if (options->operation_count > 1 || options->size_count > 1)
        refuse("--ledger takes one operation and one size");
    if (options->sizes[0] < RECORD_SIZE_MIN)
        refuse("--size: a record of a ledger has at least %d bytes", RECORD_SIZE_MIN);
    if (!is_given['N'])
        options->plan.ring = 65536;
    if (!options->plan.ring)
        refuse("--ring takes a number from 4 to %lu", RING_MAX);
    if (!is_given['D'])
        options->limits.duration_ns = DURATION_MAX_S * UINT64_C(1000000000);
}

// To check takes no server, and nothing else.
static void check_check(const struct options *options, const bool *is_given) {
    for (const struct option *option = long_options; option->name; option++)
        if (is_given[option->val] && !strchr("GYm", option->val))
            refuse("--%s does not go with --verify --ledger, which measures nothing",
                   option->name);
    if (!options->memory)
        refuse("--verify --ledger compares memory with FILE: give --memory PATH");
}

static void complete(struct options *options, const bool *is_given) {
    if (options->ledger)
        complete_for_ledger(options, is_given);
    else if (is_given['N'])
        refuse("--ring is for --ledger");
    if (!options->operation_count)
        options->operations[options->operation_count++] = 0;
    if (!options->size_count)
        add_size(options, options->plan.size);
    if (!is_given['d'])
        options->plan.depth = options->plan.batch;
    if (!is_given['c'])
        options->plan.connections = options->plan.threads;
    if (is_given['D'] && is_given['n'])
        refuse("--duration and --count exclude each other");
    for (size_t i = 0; i < options->operation_count; i++) {
        for (size_t j = 0; j < options_size_count(options, i); j++) {
            options_choose(options, i, j);
            const char *conflict = plan_conflict(&options->plan);
            if (conflict)
                refuse("%s: %s", operations[options->plan.operation].name, conflict);
        }
    }
}

struct options options_read(int argc, char *argv[]) {
    struct options options = {.port = "7204",
                              .limit = UINT64_C(1) << 30,
                              .limits = {.warmup = 100, .duration_ns = UINT64_C(3000000000)}};
    bool is_given[128] = {false};
    static char name[] = "rpma-perf"; // for the error messages of getopt_long()
    argv[0] = name;
    int letter;
    for (size_t i = 0; i < setting_count; i++)
        *plan_field(&options.plan, &settings[i]) = settings[i].start;
    while ((letter = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
        if (letter == '?')
            exit(EXIT_USAGE); // getopt_long() has printed the reason
        is_given[letter] = true;
        read_option(&options, letter);
    }
    options.is_check = options.ledger && options.plan.verify;
    if (options.is_check) {
        check_check(&options, is_given);
        if (optind < argc)
            refuse("--verify --ledger compares memory of this machine: no ADDRESS, please");
        return options;
    }
    check_side(&options, is_given);
    if (optind != argc - 1)
        refuse(optind == argc ? "ADDRESS of the server is missing; see --help"
                              : "only one ADDRESS can be given; see --help");
    options.address = argv[optind];
    complete(&options, is_given);
    return options;
}
