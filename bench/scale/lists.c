// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lists.c -- what it takes to hand a list of operations to a real device
//
//   lists ADDRESS PORT WAY KIND LENGTH TIMES
//
// WAY is plain (a call for each operation), built (a batch filled for each post), prepared (a
// batch filled once), hand-built or hand-prepared (a list of ibv_send_wr). KIND is write, of 64
// bytes, or write-flush, of 4 KiB. Each list has one completion, which is waited for before the
// next list is posted; the time of posting alone is taken.

#include "lists.h"

#include <stdlib.h>
#include <string.h>

struct kind kind;

static struct rpma_conn *conn;
static struct rpma_cq *cq;
static struct rpma_mr_remote *remote;
static struct rpma_batch *batch;
static struct side side;

static void open_connection(const char *address, const char *port) {
    side = open_side(address, port, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    struct rpma_conn_cfg *cfg;
    must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
    must(rpma_conn_cfg_set_sq_size(cfg, MOST_REQUESTS), "rpma_conn_cfg_set_sq_size");
    must(rpma_conn_cfg_set_cq_size(cfg, MOST_REQUESTS), "rpma_conn_cfg_set_cq_size");
    conn = connect_to(&side, cfg);
    rpma_conn_cfg_delete(&cfg);
    must(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
    struct rpma_conn_private_data data;
    must(rpma_conn_get_private_data(conn, &data), "rpma_conn_get_private_data");
    must(rpma_mr_remote_from_descriptor(data.ptr, data.len, &remote),
         "rpma_mr_remote_from_descriptor");
    must(rpma_batch_new(conn, MOST_REQUESTS, &batch), "rpma_batch_new");
}

static void post_plain(void) {
    for (unsigned i = 0; i < kind.length; i++) {
        const int flags =
            i + 1 == kind.length ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR;
        must(rpma_write(conn, remote, 0, side.mr, 0, kind.bytes,
                        kind.flushes ? RPMA_F_COMPLETION_ON_ERROR : flags, NULL),
             "rpma_write");
        if (kind.flushes)
            must(rpma_flush(conn, remote, 0, kind.bytes, RPMA_FLUSH_TYPE_VISIBILITY, flags,
                            NULL),
                 "rpma_flush");
    }
}

static void fill(void) {
    for (unsigned i = 0; i < kind.length; i++) {
        const int flags =
            i + 1 == kind.length ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR;
        must(rpma_batch_write(batch, remote, 0, side.mr, 0, kind.bytes,
                              kind.flushes ? RPMA_F_COMPLETION_ON_ERROR : flags, NULL),
             "rpma_batch_write");
        if (kind.flushes)
            must(rpma_batch_flush(batch, remote, 0, kind.bytes, RPMA_FLUSH_TYPE_VISIBILITY,
                                  flags, NULL),
                 "rpma_batch_flush");
    }
}

static void post_prepared(void) {
    must(rpma_batch_post(batch, NULL), "rpma_batch_post");
}

static void post_built(void) {
    must(rpma_batch_reset(batch), "rpma_batch_reset");
    fill();
    post_prepared();
}

static void wait_for_list(void) {
    struct ibv_wc wc;
    int ret;
    while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION) {
        ret = rpma_cq_wait(cq);
        if (ret != RPMA_E_NO_COMPLETION)
            must(ret, "rpma_cq_wait");
    }
    must(ret, "rpma_cq_get_wc");
    if (wc.status != IBV_WC_SUCCESS)
        give_up(ibv_wc_status_str(wc.status));
}

static const struct way {
    const char *name;
    void (*open)(const char *address, const char *port);
    void (*prepare)(void);
    void (*post)(void);
    void (*wait)(void);
} ways[] = {
    {"plain", open_connection, NULL, post_plain, wait_for_list},
    {"built", open_connection, NULL, post_built, wait_for_list},
    {"prepared", open_connection, fill, post_prepared, wait_for_list},
    {"hand-built", open_by_hand, NULL, post_built_by_hand, wait_by_hand},
    {"hand-prepared", open_by_hand, build_by_hand, post_by_hand, wait_by_hand},
};

static const struct way *way_named(const char *name) {
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
        if (strcmp(ways[i].name, name) == 0)
            return &ways[i];
    give_up("no such way");
}

static int compare(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

int main(int argc, char *argv[]) {
    if (argc != 7) {
        fprintf(stderr, "usage: %s ADDRESS PORT WAY write|write-flush LENGTH TIMES\n", argv[0]);
        return 2;
    }
    const struct way *way = way_named(argv[3]);
    kind.flushes = strcmp(argv[4], "write-flush") == 0;
    kind.bytes = kind.flushes ? BLOCK : MESSAGE;
    kind.length = (unsigned)number(argv[5]);
    const unsigned long times = number(argv[6]);
    if (kind.length < 1 || 2 * kind.length > MOST_REQUESTS || times < 1)
        give_up("LENGTH goes from 1 to 64, TIMES begins at 1");
    double *taken = calloc(times, sizeof(*taken));
    if (taken == NULL)
        give_up("out of memory");
    way->open(argv[1], argv[2]);
    if (way->prepare != NULL)
        way->prepare();
    way->post(); // whatever happens once
    way->wait();
    for (unsigned long i = 0; i < times; i++) {
        const double start = seconds();
        way->post();
        taken[i] = seconds() - start;
        way->wait();
    }
    qsort(taken, times, sizeof(*taken), compare);
    print("posting ns per operation", taken[times / 2] * 1e9 / kind.length);
    return 0;
}
