// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operations.c -- latency, throughput and CPU time of one kind of operation at a queue depth

#include "common.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = MAX_COMPLETIONS };

static struct target target;
static struct side side;

static void write_and_flush(void) {
    must(rpma_write(target.conn, target.remote, 0, side.mr, 0, BLOCK,
                    RPMA_F_COMPLETION_ON_ERROR, NULL),
         "rpma_write");
    must(rpma_flush(target.conn, target.remote, 0, BLOCK, RPMA_FLUSH_TYPE_VISIBILITY,
                    RPMA_F_COMPLETION_ALWAYS, NULL),
         "rpma_flush");
}

static void send_message(void) {
    must(rpma_send(target.conn, side.mr, 0, MESSAGE, RPMA_F_COMPLETION_ALWAYS, NULL),
         "rpma_send");
}

// A message that the server returns; it is complete when the echo has arrived.
static void exchange_messages(void) {
    must(rpma_recv(target.conn, side.mr, MESSAGE, MESSAGE, NULL), "rpma_recv");
    must(rpma_send(target.conn, side.mr, 0, MESSAGE, RPMA_F_COMPLETION_ON_ERROR, NULL),
         "rpma_send");
}

// Operations complete in the order of the posts: a ring buffer of start times suffices.
static void run(void (*post)(void), unsigned long depth, unsigned long times,
                double *latencies) {
    double starts[MAX_DEPTH];
    unsigned long posted = 0, completed = 0;
    while (completed < times) {
        for (; posted < times && posted - completed < depth; posted++) {
            starts[posted % depth] = seconds();
            post();
        }
        const unsigned long end = completed + take_completions(target.cq, MAX_DEPTH);
        const double now = seconds();
        for (; completed < end; completed++)
            latencies[completed] = now - starts[completed % depth];
    }
}

void measure_operations(char **argv) {
    const bool is_echo = strcmp(argv[2], "echo") == 0;
    void (*post)(void) = is_echo                        ? exchange_messages
                         : strcmp(argv[2], "send") == 0 ? send_message
                                                        : write_and_flush;
    const unsigned long depth = number(argv[3]), times = number(argv[4]);
    if (depth < 1 || depth > MAX_DEPTH || times < MAX_DEPTH)
        fail("DEPTH must be 1 to 64, TIMES at least 64");
    double *latencies = calloc(times, sizeof(*latencies));
    if (latencies == NULL)
        fail("out of memory");
    side = open_side(argv[0], argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE);
    // The sends of "echo" have no completions: the queue has room for all of them.
    const unsigned long entries = is_echo ? MAX_DEPTH + times : 2 * depth + 2;
    target = connect_with_queues(&side, (uint32_t)entries);

    run(post, depth, MAX_DEPTH, latencies); // warm-up: excludes one-time costs
    const double start = seconds(), cpu = cpu_seconds();
    run(post, depth, times, latencies);
    print("operations per second", (double)times / (seconds() - start));
    print("CPU us per operation", (cpu_seconds() - cpu) * 1e6 / (double)times);
    sort(latencies, times);
    print("median us", latencies[times / 2] * 1e6);
    print("p99 us", latencies[times * 99 / 100] * 1e6);

    rpma_mr_remote_delete(&target.remote);
    disconnect(target.conn);
    free(latencies);
}
