// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operations.c -- latency, throughput and CPU time of one kind of operation at a queue depth

#include "side.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64 };

static struct rpma_conn *conn;
static struct rpma_cq *cq;
static struct rpma_mr_remote *remote;
static struct side side;

static void write_and_flush(void) {
    must(rpma_write(conn, remote, 0, side.mr, 0, BLOCK, RPMA_F_COMPLETION_ON_ERROR, NULL),
         "rpma_write");
    must(rpma_flush(conn, remote, 0, BLOCK, RPMA_FLUSH_TYPE_VISIBILITY,
                    RPMA_F_COMPLETION_ALWAYS, NULL),
         "rpma_flush");
}

static void send_message(void) {
    must(rpma_send(conn, side.mr, 0, MESSAGE, RPMA_F_COMPLETION_ALWAYS, NULL), "rpma_send");
}

// Takes completions, waiting for the first one.
static unsigned long complete(void) {
    struct ibv_wc wc[MOST_DEPTH];
    int got, ret;
    while ((ret = rpma_cq_get_wc(cq, MOST_DEPTH, wc, &got)) == RPMA_E_NO_COMPLETION) {
        ret = rpma_cq_wait(cq);
        if (ret != RPMA_E_NO_COMPLETION)
            must(ret, "rpma_cq_wait");
    }
    must(ret, "rpma_cq_get_wc");
    for (int i = 0; i < got; i++)
        if (wc[i].status != IBV_WC_SUCCESS)
            give_up(ibv_wc_status_str(wc[i].status));
    return (unsigned long)got;
}

// A reliable connection completes in the order of the posts, so a ring of starts is enough.
static void run(void (*post)(void), unsigned long depth, unsigned long times,
                double *latencies) {
    double starts[MOST_DEPTH];
    unsigned long posted = 0, completed = 0;
    while (completed < times) {
        for (; posted < times && posted - completed < depth; posted++) {
            starts[posted % depth] = seconds();
            post();
        }
        const unsigned long upto = completed + complete();
        const double now = seconds();
        for (; completed < upto; completed++)
            latencies[completed] = now - starts[completed % depth];
    }
}

static int compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void open_connection(char *const argv[], unsigned long depth) {
    side = open_side(argv[0], argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE);
    struct rpma_conn_cfg *cfg;
    must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
    must(rpma_conn_cfg_set_sq_size(cfg, (uint32_t)(2 * depth + 2)),
         "rpma_conn_cfg_set_sq_size");
    must(rpma_conn_cfg_set_cq_size(cfg, (uint32_t)(2 * depth + 2)),
         "rpma_conn_cfg_set_cq_size");
    conn = connect_to(&side, cfg);
    rpma_conn_cfg_delete(&cfg);
    must(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
    struct rpma_conn_private_data data;
    must(rpma_conn_get_private_data(conn, &data), "rpma_conn_get_private_data");
    must(rpma_mr_remote_from_descriptor(data.ptr, data.len, &remote),
         "rpma_mr_remote_from_descriptor");
}

int measure_operations(char *const argv[]) {
    void (*post)(void) = strcmp(argv[2], "send") == 0 ? send_message : write_and_flush;
    const unsigned long depth = number(argv[3]), times = number(argv[4]);
    if (depth < 1 || depth > MOST_DEPTH || times < MOST_DEPTH)
        give_up("the depth goes from 1 to 64, the times begin at 64");
    double *latencies = calloc(times, sizeof(*latencies));
    if (latencies == NULL)
        give_up("out of memory");
    open_connection(argv, depth);

    run(post, depth, MOST_DEPTH, latencies); // whatever happens once
    const double start = seconds(), cpu = cpu_seconds();
    run(post, depth, times, latencies);
    print("operations per second", (double)times / (seconds() - start));
    print("CPU us per operation", (cpu_seconds() - cpu) * 1e6 / (double)times);
    qsort(latencies, times, sizeof(*latencies), compare);
    print("median us", latencies[times / 2] * 1e6);
    print("p99 us", latencies[times * 99 / 100] * 1e6);

    rpma_mr_remote_delete(&remote);
    leave(conn);
    free(latencies);
    return 0;
}
