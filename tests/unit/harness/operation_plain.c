// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operation_plain.c -- see operation_plain.h

#include "operation_plain.h"

const enum ibv_wr_opcode operation_opcodes[] = {
    [RPMA_WORK_READ] = IBV_WR_RDMA_READ,
    [RPMA_WORK_WRITE] = IBV_WR_RDMA_WRITE,
    [RPMA_WORK_WRITE_WITH_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
    [RPMA_WORK_ATOMIC_WRITE] = IBV_WR_RDMA_WRITE,
    [RPMA_WORK_FLUSH] = IBV_WR_RDMA_READ,
    [RPMA_WORK_SEND] = IBV_WR_SEND,
    [RPMA_WORK_SEND_WITH_IMM] = IBV_WR_SEND_WITH_IMM,
    [RPMA_WORK_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
    [RPMA_WORK_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
};

int operation_plain(const struct rpma_work *o, struct rpma_conn *conn) {
    struct rpma_mr_local *const local = (struct rpma_mr_local *)(uintptr_t)o->local.mr;
    struct rpma_mr_remote *const remote = (struct rpma_mr_remote *)(uintptr_t)o->remote;
    const size_t from = o->local.offset, to = o->remote_offset, len = o->local.len;
    switch (o->type) {
    case RPMA_WORK_READ:
        return rpma_read(conn, local, from, remote, to, len, o->flags, o->op_context);
    case RPMA_WORK_WRITE:
        return rpma_write(conn, remote, to, local, from, len, o->flags, o->op_context);
    case RPMA_WORK_WRITE_WITH_IMM:
        return rpma_write_with_imm(conn, remote, to, local, from, len, o->flags, o->imm,
                                   o->op_context);
    case RPMA_WORK_ATOMIC_WRITE:
        return rpma_atomic_write(conn, remote, to, (const char *)&o->value, o->flags,
                                 o->op_context);
    case RPMA_WORK_FLUSH:
        return rpma_flush(conn, remote, to, o->flush_len, o->flush_type, o->flags,
                          o->op_context);
    case RPMA_WORK_SEND:
        return rpma_send(conn, local, from, len, o->flags, o->op_context);
    case RPMA_WORK_FETCH_ADD: // these types have no plain function
    case RPMA_WORK_COMPARE_SWAP:
        return rpma_post(conn, o, 1, NULL);
    default:
        return rpma_send_with_imm(conn, local, from, len, o->flags, o->imm, o->op_context);
    }
}
