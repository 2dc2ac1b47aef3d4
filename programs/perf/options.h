// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// options.h -- the command line

#ifndef RPMA_PERF_OPTIONS_H
#define RPMA_PERF_OPTIONS_H 1

#include "load.h"

#define SIZES_MAX 64

struct options {
    bool is_server;
    const char *address;
    const char *port;
    const char *memory; // path; NULL: DRAM
    bool direct_write;  // to that memory, as the operator states
    uint64_t limit;     // for the memory of a client's load, without a path
    bool once;
    bool json;
    const char *ledger; // path; NULL: none
    bool is_check;      // of the memory against the ledger, without a server
    uint64_t operations[OPERATION_COUNT];
    size_t operation_count;
    bool takes_all; // "all": the client skips operations that the server does not allow
    uint64_t sizes[SIZES_MAX];
    size_t size_count;
    struct plan plan; // operation and size vary
    struct limits limits;
};

// Ends the program with one line if the arguments are wrong.
struct options options_read(int argc, char *argv[]);

// The number of sizes for an operation; options_choose() of one of them completes the plan.
size_t options_size_count(const struct options *options, size_t operation);
void options_choose(struct options *options, size_t operation, size_t size);

#endif
