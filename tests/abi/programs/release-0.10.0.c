// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// release-0.10.0.c -- a program of release 0.10.0: receive CQs, immediate data, and completions
// through the connection as well as through its CQs.

#include <string.h>

#include "completion.h"
#include "write_atomic.h"

static void take_from_conn(struct rpma_conn *conn, const void *op_context, enum kind kind) {
    struct rpma_completion cmpl;
    int fd = -1, ret;
    memset(&cmpl, 0xa5, sizeof(cmpl));
    MUST(rpma_conn_get_completion_fd(conn, &fd));
    CHECK(fd >= 0);
    do {
        MUST(rpma_conn_completion_wait(conn));
        ret = rpma_conn_completion_get(conn, &cmpl);
    } while (ret == RPMA_E_NO_COMPLETION);
    MUST(ret);
    expect_completion(&cmpl, op_context, kind);
}

// Completions of receives are in the receive CQ.
static void take(struct rpma_conn *conn, const void *op_context, enum kind kind) {
    struct rpma_completion cmpl;
    struct rpma_cq *rcq = NULL;
    int fd = -1, ret;
    if (kind != RECV && kind != RECV_IMM) {
        take_from_conn(conn, op_context, kind);
        return;
    }
    MUST(rpma_conn_get_rcq(conn, &rcq));
    MUST(rpma_cq_get_fd(rcq, &fd));
    CHECK(fd >= 0);
    do {
        MUST(rpma_cq_wait(rcq));
        ret = rpma_cq_get_completion(rcq, &cmpl);
    } while (ret == RPMA_E_NO_COMPLETION);
    MUST(ret);
    expect_completion(&cmpl, op_context, kind);
}

static void ask_region(const struct life *life) {
    void *ptr = NULL;
    size_t size = 0;
    uint32_t number = 0;
    struct rpma_conn_private_data pdata = {NULL, 0};
    MUST(rpma_mr_get_ptr(life->client.mr, &ptr));
    MUST(rpma_mr_get_size(life->client.mr, &size));
    CHECK(ptr == life->client.memory && size == LIFE_MEMORY);
    MUST(rpma_conn_get_qp_num(life->client.conn, &number));
    CHECK(number != 0);
    MUST(rpma_conn_get_private_data(life->client.conn, &pdata));
    CHECK(pdata.ptr != NULL);
}

static void be_refused(struct life *life) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    struct rpma_conn *conn = life_refused(life);
    MUST(rpma_conn_next_event(conn, &event));
    CHECK(event == RPMA_CONN_REJECTED);
    MUST(rpma_conn_delete(&conn));
}

int main(int argc, char *argv[]) {
    struct rpma_conn_cfg *cfg = NULL;
    struct life life;
    MUST(rpma_conn_cfg_new(&cfg));
    MUST(rpma_conn_cfg_set_rcq_size(cfg, 10));
    life_open(&life, argc, argv);
    life_connect(&life, cfg, &cfg);
    life_exchange(&life, take, &cfg);
    life_write_8(&life, write_atomic, take);
    write_with_imm(&life, take);
    ask_region(&life);
    be_refused(&life);
    MUST(rpma_conn_cfg_delete(&cfg));
    life_close(&life);
    return 0;
}
