// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// result.h -- the result of a run, and its output as a table or JSON

#ifndef RPMA_PERF_RESULT_H
#define RPMA_PERF_RESULT_H 1

#include "options.h"

#define SIDE_TEXT 128

// The software, device and memory of a side.
struct side {
    char librpma[SIDE_TEXT];
    char kernel[SIDE_TEXT];
    char device[SIDE_TEXT];
    char memory[SIDE_TEXT]; // kind: "dram", "file", "fsdax" or "devdax"
    bool direct_write;      // to the memory, as the server's operator states
};

struct result {
    uint64_t operation, size;
    uint64_t operations; // completed operations of all connections
    double seconds;
    uint64_t client_cpu_ns, server_cpu_ns;
    bool is_verified;
    struct histogram latency;
};

// Whether the data is persistent: the server's statement, because nothing can measure it.
static inline bool result_is_persistent(const struct result *result) {
    return operations[result->operation].flush == RPMA_FLUSH_TYPE_PERSISTENT;
}

double result_rate(const struct result *result);      // operations per second
double result_bandwidth(const struct result *result); // MiB per second
double result_us(const struct result *result,
                 double part); // the latency that this part of all did not exceed

double result_cpu_us(const struct result *result,
                     uint64_t cpu_ns); // processor time per operation

void side_describe(struct side *side, const char *device, const char *memory);

// The table has a line for each result.
void table_begin(const struct options *options, const struct side *client,
                 const struct side *server);
void table_add(const struct result *result);
// Shows the progress, on a terminal only, until the next line of the table.
void progress_show(const char *operation, uint64_t size, uint64_t operations, double seconds);
void progress_clear(void);

// One JSON object with all results, on standard output.
struct json_report;
struct json_report *json_begin(const struct options *options, const struct side *client,
                               const struct side *server);
void json_add(struct json_report *report, const struct result *result);
// Prints and frees the report, which may be NULL. Returns false if it cannot be written.
bool json_end(struct json_report *report);
void json_drop(struct json_report *report);

#endif
