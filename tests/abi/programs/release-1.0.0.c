// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// release-1.0.0.c -- a program of the releases 1.0.0 to 1.3.0, whose 84 functions are the same:
// shared completion channels and shared receive queues.

#include <string.h>

#include "atomic_write.h"
#include "wc.h"

static void take_shared(struct rpma_conn *conn, const void *op_context, enum kind kind) {
    struct rpma_cq *cq = NULL;
    struct ibv_wc wc;
    bool is_rcq = false;
    int fd = -1, ret;
    MUST(rpma_conn_get_compl_fd(conn, &fd));
    CHECK(fd >= 0);
    do {
        MUST(rpma_conn_wait(conn, 0, &cq, &is_rcq));
        ret = rpma_cq_get_wc(cq, 1, &wc, NULL);
    } while (ret == RPMA_E_NO_COMPLETION);
    MUST(ret);
    CHECK(is_rcq == (kind == RECV));
    CHECK(rpma_cq_wait(cq) == RPMA_E_SHARED_CHANNEL);
    expect_wc(&wc, op_context, kind);
}

static void with_shared_channel(int argc, char *argv[]) {
    struct rpma_conn_cfg *cfg = NULL;
    struct life life;
    bool shared = false;
    MUST(rpma_conn_cfg_new(&cfg));
    MUST(rpma_conn_cfg_set_compl_channel(cfg, true));
    MUST(rpma_conn_cfg_get_compl_channel(cfg, &shared));
    CHECK(shared);
    MUST(rpma_conn_cfg_set_rcq_size(cfg, 10));
    life_open(&life, argc, argv);
    life_connect(&life, cfg, &cfg);
    life_exchange(&life, take_shared, &cfg);
    life_write_8(&life, atomic_write, take_shared);
    MUST(rpma_conn_cfg_delete(&cfg));
    life_close(&life);
}

// Completions of receives are in the CQ of the shared receive queue.
static struct rpma_cq *srq_cq;

static void take_srq(struct rpma_conn *conn, const void *op_context, enum kind kind) {
    struct ibv_wc wc;
    int ret;
    if (kind != RECV) {
        take_wc(conn, op_context, kind);
        return;
    }
    do {
        MUST(rpma_cq_wait(srq_cq));
        ret = rpma_cq_get_wc(srq_cq, 1, &wc, NULL);
    } while (ret == RPMA_E_NO_COMPLETION);
    MUST(ret);
    expect_wc(&wc, op_context, kind);
}

static void with_srq(int argc, char *argv[]) {
    struct rpma_srq_cfg *srq_cfg = NULL;
    struct rpma_conn_cfg *cfg = NULL;
    struct rpma_srq *srq = NULL;
    struct life life;
    life_open(&life, argc, argv);
    MUST(rpma_srq_cfg_new(&srq_cfg));
    MUST(rpma_srq_cfg_set_rq_size(srq_cfg, 10));
    MUST(rpma_srq_cfg_set_rcq_size(srq_cfg, 10));
    MUST(rpma_srq_new(life.peer, srq_cfg, &srq));
    MUST(rpma_srq_cfg_delete(&srq_cfg));
    MUST(rpma_srq_get_rcq(srq, &srq_cq));
    MUST(rpma_conn_cfg_new(&cfg));
    MUST(rpma_conn_cfg_set_srq(cfg, srq));
    life_connect(&life, cfg, NULL);
    MUST(rpma_conn_cfg_delete(&cfg));

    MUST(rpma_srq_recv(srq, life.server.mr, 0, 64, &srq));
    life_exchange(&life, take_srq, &srq);
    life_disconnect(&life);
    MUST(rpma_srq_delete(&srq));
    life_close(&life);
}

int main(int argc, char *argv[]) {
    with_shared_channel(argc, argv);
    with_srq(argc, argv);
    return 0;
}
