// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// completion.h -- struct rpma_completion as programs of 0.10.0 and 0.11.0 know it.

#ifndef COMPLETION_H
#define COMPLETION_H 1

#include "life.h"

#define IMM 0x12345678u

static inline void expect_completion(const struct rpma_completion *cmpl, const void *op_context,
                                     enum kind kind) {
    static const enum rpma_op ops[] = {
        [READ] = RPMA_OP_READ, [WRITE] = RPMA_OP_WRITE, [FLUSH] = RPMA_OP_READ,
        [SEND] = RPMA_OP_SEND, [RECV] = RPMA_OP_RECV,   [RECV_IMM] = RPMA_OP_RECV_RDMA_WITH_IMM,
    };
    CHECK(cmpl->op_context == op_context);
    CHECK(cmpl->op_status == IBV_WC_SUCCESS);
    CHECK(cmpl->op == ops[kind] || (kind == FLUSH && cmpl->op == RPMA_OP_FLUSH));
    CHECK(kind != RECV || cmpl->byte_len == sizeof("a message"));
    if (kind == RECV_IMM)
        CHECK(cmpl->flags & IBV_WC_WITH_IMM && cmpl->imm == IMM);
}

// Writes 8 bytes with immediate data, which completes a receive of the other side in its
// receive CQ.
static inline void write_with_imm(struct life *life, life_take *take) {
    struct side *client = &life->client, *server = &life->server;
    MUST(rpma_recv(server->conn, NULL, 0, 0, server));
    MUST(rpma_write_with_imm(client->conn, client->other, 64, client->mr, 64, 8,
                             RPMA_F_COMPLETION_ALWAYS, IMM, client));
    loopback_run();
    take(client->conn, client, WRITE);
    take(server->conn, server, RECV_IMM);
}

#endif // COMPLETION_H
