// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// table.c -- results as a table, and the progress display

#include "result.h"

#include "library.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

double result_rate(const struct result *result) {
    return result->seconds > 0 ? (double)result->operations / result->seconds : 0;
}

double result_bandwidth(const struct result *result) {
    return result_rate(result) * (double)result->size / (1 << 20);
}

double result_us(const struct result *result, double part) {
    return (double)histogram_at(&result->latency, part) / 1000;
}

void side_describe(struct side *side, const char *device, const char *memory) {
    struct utsname system;
    snprintf(side->librpma, SIDE_TEXT, "%s", library_version());
    snprintf(side->kernel, SIDE_TEXT, "%s", uname(&system) ? "unknown" : system.release);
    snprintf(side->device, SIDE_TEXT, "%s", device);
    snprintf(side->memory, SIDE_TEXT, "%s", memory);
}

double result_cpu_us(const struct result *result, uint64_t cpu_ns) {
    return result->operations ? (double)cpu_ns / 1000 / (double)result->operations : 0;
}

void table_begin(const struct options *options, const struct side *client,
                 const struct side *server) {
    const struct plan *plan = &options->plan;
    printf("client: librpma %s, %s, Linux %s\n", client->librpma, client->device,
           client->kernel);
    printf("server: librpma %s, %s, Linux %s, memory %s%s\n", server->librpma, server->device,
           server->kernel, server->memory, server->direct_write ? ", direct write stated" : "");
    printf("depth %lu, batch %lu%s, elements %lu, inline %lu, connections %lu, "
           "threads %lu, %s\n",
           plan->depth, plan->batch, plan->prepared ? " prepared" : "", plan->elements,
           plan->inline_size, plan->connections, plan->threads,
           plan->poll ? "polling" : "waiting for events");
    printf("\n%-16s %8s %9s %8s %8s %8s %9s %9s %8s %7s %7s\n", "", "", "", "median", "p99",
           "p99.9", "max", "", "", "CPU/op", "server");
    printf("%-16s %8s %9s %8s %8s %8s %9s %9s %8s %7s %7s\n", "operation", "bytes",
           "operations", "us", "us", "us", "us", "op/s", "MiB/s", "us", "us");
    fflush(stdout);
}

void table_add(const struct result *result) {
    progress_clear();
    printf("%-16s %8lu %9lu %8.2f %8.2f %8.2f %9.2f %9.0f %8.2f %7.2f %7.2f%s%s\n",
           operations[result->operation].name, result->size, result->operations,
           result_us(result, 0.5), result_us(result, 0.99), result_us(result, 0.999),
           (double)result->latency.max / 1000, result_rate(result), result_bandwidth(result),
           result_cpu_us(result, result->client_cpu_ns),
           result_cpu_us(result, result->server_cpu_ns),
           result->is_verified ? "  verified" : "",
           result_is_persistent(result) ? "  persistent as stated" : "");
    fflush(stdout);
}

void progress_show(const char *operation, uint64_t size, uint64_t operations_done,
                   double seconds) {
    if (!isatty(STDERR_FILENO))
        return;
    fprintf(stderr, "\r%s, %lu bytes: %lu operations in %.1f s\033[K", operation, size,
            operations_done, seconds);
    fflush(stderr);
}

void progress_clear(void) {
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}
