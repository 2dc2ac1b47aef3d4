// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// perf_report.c -- prints results that stand here as rpma-perf would: perf_report table|json

#include "failure.h"
#include "result.h"
#include "waiting.h"

#include <stdlib.h>
#include <string.h>

// load.c needs these, and nothing here runs a load.
uint64_t now_ns(void) {
    abort();
}

uint64_t cpu_ns(void) {
    abort();
}

bool is_stopping(void) {
    abort();
}

bool make_nonblocking(int fd) {
    (void)fd;
    abort();
}

int wait_for(struct pollfd *fds, nfds_t count, int milliseconds) {
    (void)fds;
    (void)count;
    (void)milliseconds;
    abort();
}

bool wait_readable(int fd, int milliseconds) {
    (void)fd;
    (void)milliseconds;
    abort();
}

// By numbers of operations[]: flush-persistent, read and send.
static const struct {
    struct result result;
    uint64_t latencies[3]; // in ns; 0: none
} results[] = {
    {{.operation = 3,
      .size = 64,
      .operations = 3,
      .seconds = 0.0015,
      .client_cpu_ns = 3000,
      .server_cpu_ns = 1500,
      .is_verified = true},
     {400, 3000, 500}},
    {{.operation = 1, .size = 1 << 20}, {0}},
    {{.operation = 5,
      .size = 4096,
      .operations = 1000000,
      .seconds = 2.5,
      .client_cpu_ns = UINT64_C(12500000000)},
     {1000004, 600000}},
};

int main(int argc, char *argv[]) {
    static struct result result; // a histogram is large
    const struct side client = {"1.3.0", "6.1", "mlx5_0", "dram", false};
    const struct side server = {"1.4.0", "7.3", "rxe1", "devdax", true};
    const struct options options = {
        .address = "192.0.2.1",
        .port = "7471",
        .plan = {.depth = 16,
                 .batch = 4,
                 .prepared = 1,
                 .elements = 2,
                 .inline_size = 64,
                 .connections = 3,
                 .threads = 5,
                 .verify = 1},
        .limits = {.warmup = 100, .duration_ns = UINT64_C(2500000000)},
    };
    bool is_json = argc > 1 && !strcmp(argv[1], "json");
    struct json_report *report = is_json ? json_begin(&options, &client, &server) : NULL;
    if (!is_json)
        table_begin(&options, &client, &server);
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        result = results[i].result;
        histogram_reset(&result.latency);
        for (size_t k = 0; k < 3 && results[i].latencies[k]; k++)
            histogram_add(&result.latency, results[i].latencies[k]);
        if (is_json)
            json_add(report, &result);
        else
            table_add(&result);
    }
    return json_end(report) ? EXIT_SUCCESS : EXIT_FAILURE;
}
