// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// release.c -- a program as users of release 0.RELEASE.0 wrote it, or, if RELEASE is 100, users
// of 1.0.0 to 1.3.0, which have the same 84 functions. It uses the functions that differ
// between releases; the others are the same function at each version node.

#include <string.h>

#include "session.h"

#ifndef RELEASE
#define RELEASE 100
#endif
#define IMM 0x12345678u

// Some headers of libibverbs lack these opcodes.
enum { NATIVE_FLUSH = 8, NATIVE_ATOMIC_WRITE = 9 };

// ---- struct rpma_completion, of 24 bytes in 0.9.0, and of 32 in 0.10.0 and 0.11.0 ----------

#if RELEASE <= 11
static void expect_completion(const struct rpma_completion *cmpl, const void *op_context,
                              enum kind kind) {
    static const enum rpma_op ops[] = {
        [READ] = RPMA_OP_READ,
        [WRITE] = RPMA_OP_WRITE,
        [FLUSH] = RPMA_OP_READ,
        [SEND] = RPMA_OP_SEND,
        [RECV] = RPMA_OP_RECV,
#if RELEASE >= 10
        [RECV_IMM] = RPMA_OP_RECV_RDMA_WITH_IMM,
    };
    if (kind == RECV_IMM)
        CHECK(cmpl->flags & IBV_WC_WITH_IMM && cmpl->imm == IMM);
#else
    };
#endif
    CHECK(cmpl->op_context == op_context);
    CHECK(cmpl->op_status == IBV_WC_SUCCESS);
    CHECK(cmpl->op == ops[kind] || (kind == FLUSH && cmpl->op == RPMA_OP_FLUSH));
    CHECK(kind != RECV || cmpl->byte_len == sizeof("a message"));
}

#if RELEASE <= 10
static void take(struct rpma_conn *conn, const void *op_context, enum kind kind) {
    struct {
        struct rpma_completion cmpl;
        unsigned char behind[64]; // the library must not write here
    } room;
    int fd = -1, ret;
    memset(&room, 0xa5, sizeof(room));
    CHECK(rpma_conn_get_completion_fd(conn, &fd) == 0 && fd >= 0);
    do {
        MUST(rpma_conn_completion_wait(conn));
        ret = rpma_conn_completion_get(conn, &room.cmpl);
    } while (ret == RPMA_E_NO_COMPLETION);
    MUST(ret);
    expect_completion(&room.cmpl, op_context, kind);
    for (size_t i = 0; i < sizeof(room.behind); i++)
        CHECK(room.behind[i] == 0xa5);
    CHECK(rpma_conn_completion_get(conn, &room.cmpl) == RPMA_E_NO_COMPLETION);
}
#else
static void take(struct rpma_conn *conn, const void *op_context, enum kind kind) {
    struct rpma_completion cmpl;
    struct rpma_cq *cq = NULL;
    int ret;
    MUST(rpma_conn_get_cq(conn, &cq));
    memset(&cmpl, 0xa5, sizeof(cmpl));
    do {
        MUST(rpma_cq_wait(cq));
        ret = rpma_cq_get_completion(cq, &cmpl);
    } while (ret == RPMA_E_NO_COMPLETION);
    MUST(ret);
    expect_completion(&cmpl, op_context, kind);
}
#endif

#if RELEASE >= 10
// Writes 8 bytes with immediate data, which completes a receive of the other side.
static void write_with_imm(struct session *session, session_take *take_one) {
    struct side *client = &session->client, *server = &session->server;
    MUST(rpma_recv(server->conn, NULL, 0, 0, server));
    MUST(rpma_write_with_imm(client->conn, client->other, 64, client->mr, 64, 8,
                             RPMA_F_COMPLETION_ALWAYS, IMM, client));
    loopback_run();
    take_one(client->conn, client, WRITE);
    take_one(server->conn, server, RECV_IMM);
}
#endif
#endif

// ---- struct ibv_wc, since 0.11.0 -----------------------------------------------------------

#if RELEASE >= 11
static void take_wc(struct rpma_conn *conn, const void *op_context, enum kind kind) {
    static const enum ibv_wc_opcode opcodes[] = {
        [READ] = IBV_WC_RDMA_READ,  [WRITE] = IBV_WC_RDMA_WRITE,
        [FLUSH] = IBV_WC_RDMA_READ, [SEND] = IBV_WC_SEND,
        [RECV] = IBV_WC_RECV,       [RECV_IMM] = IBV_WC_RECV_RDMA_WITH_IMM,
    };
    struct rpma_cq *cq = NULL;
    struct ibv_wc wc;
    int got = 0, ret;
    MUST(rpma_conn_get_cq(conn, &cq));
    do {
        MUST(rpma_cq_wait(cq));
        ret = rpma_cq_get_wc(cq, 1, &wc, &got);
    } while (ret == RPMA_E_NO_COMPLETION);
    MUST(ret);
    const int opcode = (int)wc.opcode;
    if (wc.status != IBV_WC_SUCCESS)
        fprintf(stderr, "operation of kind %d: status %d\n", (int)kind, (int)wc.status);
    CHECK(got == 1);
    CHECK(wc.wr_id == (uintptr_t)op_context);
    CHECK(wc.status == IBV_WC_SUCCESS);
    CHECK(opcode == (int)opcodes[kind] || (kind == FLUSH && opcode == NATIVE_FLUSH) ||
          (kind == WRITE && opcode == NATIVE_ATOMIC_WRITE));
    CHECK(kind != RECV || wc.byte_len == sizeof("a message"));
}
#endif
#if RELEASE >= 12
#define take take_wc
#endif

// ---- the writes of 8 bytes -----------------------------------------------------------------

#if RELEASE <= 13 // from a region, fenced
static int write_atomic(struct session *session, size_t offset, const void *op_context) {
    return rpma_write_atomic(session->client.conn, session->client.other, offset,
                             session->client.mr, 0, RPMA_F_COMPLETION_ALWAYS, op_context);
}
#endif

#if RELEASE >= 13
static int atomic_write(struct session *session, size_t offset, const void *op_context) {
    return rpma_atomic_write(session->client.conn, session->client.other, offset,
                             (const char *)session->client.memory, RPMA_F_COMPLETION_ALWAYS,
                             op_context);
}
#endif

int main(int argc, char *argv[]) {
    struct session session;
    session_open(&session, argc, argv);
    session_exchange(&session, take);
#if RELEASE == 10 || RELEASE == 11
    write_with_imm(&session, take);
#endif
#if RELEASE == 11 // this release has both functions for completions
    session_write_8(&session, write_atomic, take_wc);
    write_with_imm(&session, take_wc);
#elif RELEASE <= 13
    session_write_8(&session, write_atomic, take);
#endif
#if RELEASE >= 13
    session_write_8(&session, atomic_write, take);
#endif
    session_close(&session);
    return 0;
}
