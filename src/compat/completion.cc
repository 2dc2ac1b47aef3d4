// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// completion.cc -- exports: the completion functions of releases before 0.12
//
// struct rpma_completion has 24 bytes in 0.9.0 and 32 bytes since 0.10. Therefore
// rpma_conn_completion_get has two implementations, each at its version node.

#include <arpa/inet.h>
#include <cinttypes>
#include <optional>

#include "base/refuse.hh"
#include "core/conn.hh"

using namespace rpma;

namespace {

// Missing in older headers that the library supports.
constexpr int WC_FLUSH = 8;
constexpr int WC_ATOMIC_WRITE = 9;

std::optional<rpma_op> to_rpma_op(int opcode) {
    switch (opcode) {
    case IBV_WC_RDMA_READ:
        return RPMA_OP_READ;
    case IBV_WC_RDMA_WRITE:
    case WC_ATOMIC_WRITE:
        return RPMA_OP_WRITE;
    case WC_FLUSH:
        return RPMA_OP_FLUSH;
    case IBV_WC_SEND:
        return RPMA_OP_SEND;
    case IBV_WC_RECV:
        return RPMA_OP_RECV;
    case IBV_WC_RECV_RDMA_WITH_IMM:
        return RPMA_OP_RECV_RDMA_WITH_IMM;
    default:
        return std::nullopt;
    }
}

// Polls one completion. Returns false on failure: RPMA_E_NO_COMPLETION, RPMA_E_PROVIDER,
// RPMA_E_UNKNOWN.
bool poll_one(Call &call, rpma_cq &cq, ibv_wc &wc) {
    const int got = ibv_poll_cq(&cq.queue(), 1, &wc);
    if (got != 1)
        report_poll(call, got, 1);
    else if (wc.status != IBV_WC_SUCCESS)
        RPMA_LOG(RPMA_LOG_LEVEL_WARNING, call.function(),
                 "operation 0x%" PRIx64 " failed: %s (%d)", wc.wr_id,
                 ibv_wc_status_str(wc.status), wc.status);
    return got == 1;
}

void reject_opcode(Call &call, int opcode) {
    RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
              "no RPMA_OP_* is defined for the opcode of the completion: %d", opcode);
}

void get_completion(Call &call, rpma_cq &cq, rpma_completion &cmpl) {
    ibv_wc wc = {};
    if (!poll_one(call, cq, wc))
        return;
    cmpl.op_context = reinterpret_cast<void *>(wc.wr_id);
    cmpl.op_status = wc.status;
    if (wc.status != IBV_WC_SUCCESS)
        return;

    auto op = to_rpma_op(wc.opcode);
    if (!op) {
        reject_opcode(call, wc.opcode);
        return;
    }
    cmpl.op = *op;
    cmpl.byte_len = wc.byte_len;
    cmpl.flags = wc.wc_flags;
    const bool is_received = *op == RPMA_OP_RECV || *op == RPMA_OP_RECV_RDMA_WITH_IMM;
    if (is_received && (wc.wc_flags & IBV_WC_WITH_IMM) != 0)
        cmpl.imm = ntohl(wc.imm_data);
}

} // namespace

int rpma_cq_get_completion(struct rpma_cq *cq, struct rpma_completion *cmpl) {
    RPMA_REFUSE(cq == NULL);
    RPMA_REFUSE(cmpl == NULL);
    Call call(__func__);
    get_completion(call, *cq, *cmpl);
    return call.finish();
}

int rpma_conn_completion_get(struct rpma_conn *conn, struct rpma_completion *cmpl) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(cmpl == NULL);
    Call call(__func__);
    get_completion(call, *conn->cq(), *cmpl);
    return call.finish();
}

#ifdef RPMA_SYMBOL_VERSIONS
namespace {

// Checks the opcode first, even of a failed completion, and does not write flags and imm, which
// the structure of 0.9.0 lacks.
void get_completion_0_9(Call &call, rpma_cq &cq, rpma_completion &cmpl) {
    ibv_wc wc = {};
    if (!poll_one(call, cq, wc))
        return;
    auto op = to_rpma_op(wc.opcode);
    if (!op || *op == RPMA_OP_RECV_RDMA_WITH_IMM) {
        reject_opcode(call, wc.opcode);
        return;
    }
    cmpl.op_context = reinterpret_cast<void *>(wc.wr_id);
    cmpl.op = *op;
    cmpl.byte_len = wc.byte_len;
    cmpl.op_status = wc.status;
}

} // namespace

int rpma_conn_completion_get_0_9(struct rpma_conn *conn, struct rpma_completion *cmpl) {
    constexpr const char *FUNCTION = "rpma_conn_completion_get";
    RPMA_REFUSE_IN(FUNCTION, conn == NULL);
    RPMA_REFUSE_IN(FUNCTION, cmpl == NULL);
    Call call(FUNCTION);
    get_completion_0_9(call, *conn->cq(), *cmpl);
    return call.finish();
}
#endif

int rpma_conn_completion_wait(struct rpma_conn *conn) {
    RPMA_REFUSE(conn == NULL);
    return conn->cq()->wait(__func__);
}

int rpma_conn_get_completion_fd(const struct rpma_conn *conn, int *fd) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(fd == NULL);
    *fd = conn->cq()->fd();
    return 0;
}
