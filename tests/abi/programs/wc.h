// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// wc.h -- completions as ibv_wc: the way since 0.11.0, the only one since 0.12.0.

#ifndef WC_H
#define WC_H 1

#include "life.h"

// Some headers of libibverbs do not have these yet.
enum { NATIVE_FLUSH = 8, NATIVE_ATOMIC_WRITE = 9 };

static inline void expect_wc(const struct ibv_wc *wc, const void *op_context, enum kind kind) {
    static const enum ibv_wc_opcode opcodes[] = {
        [READ] = IBV_WC_RDMA_READ,  [WRITE] = IBV_WC_RDMA_WRITE,
        [FLUSH] = IBV_WC_RDMA_READ, [SEND] = IBV_WC_SEND,
        [RECV] = IBV_WC_RECV,       [RECV_IMM] = IBV_WC_RECV_RDMA_WITH_IMM,
    };
    const int opcode = (int)wc->opcode;
    if (wc->status != IBV_WC_SUCCESS)
        fprintf(stderr, "operation of kind %d: status %d\n", (int)kind, (int)wc->status);
    CHECK(wc->wr_id == (uintptr_t)op_context);
    CHECK(wc->status == IBV_WC_SUCCESS);
    CHECK(opcode == (int)opcodes[kind] || (kind == FLUSH && opcode == NATIVE_FLUSH) ||
          (kind == WRITE && opcode == NATIVE_ATOMIC_WRITE));
    CHECK(kind != RECV || wc->byte_len == sizeof("a message"));
}

static inline void take_wc(struct rpma_conn *conn, const void *op_context, enum kind kind) {
    struct rpma_cq *cq = NULL;
    struct ibv_wc wc;
    int got = 0, ret;
    MUST(rpma_conn_get_cq(conn, &cq));
    do {
        MUST(rpma_cq_wait(cq));
        ret = rpma_cq_get_wc(cq, 1, &wc, &got);
    } while (ret == RPMA_E_NO_COMPLETION);
    MUST(ret);
    CHECK(got == 1);
    expect_wc(&wc, op_context, kind);
}

#endif // WC_H
