// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// send.hh -- posts one work request

#pragma once

#include "core/conn.hh"
#include "post/refused.hh"
#include "post/tuned.hh"
#include "post/work_request.hh"

namespace rpma {

[[gnu::always_inline]] inline int send(const char *function, const rpma_conn &conn,
                                       ibv_send_wr &wr) {
    wr.next = nullptr;
    keep_conn(wr, conn);
    ibv_send_wr *bad;
    const int result = ibv_post_send(conn.qp, &wr, &bad);
    return result == 0 ? 0 : refused_send(function, wr, result);
}

struct Request {
    ibv_sge sge;
    ibv_send_wr wr;
};

[[gnu::always_inline]] inline int send(const char *function, const rpma_conn &conn,
                                       Request &request) {
    request.wr.sg_list = &request.sge;
    return send(function, conn, request.wr);
}

// Posts an operation without memory on either side; the other side may still observe it.
[[gnu::noinline]] inline int send_empty(const char *function, const rpma_conn &conn,
                                        ibv_wr_opcode opcode, unsigned send_flags, uint32_t imm,
                                        const void *op_context) {
    ibv_send_wr wr;
    wr.sg_list = nullptr;
    describe(wr, opcode, 0, send_flags, imm, op_context);
    address_nothing(wr);
    return send(function, conn, wr);
}

// Is true if 8 bytes at the remote address can be written atomically. If not, the connection
// logs one warning: a program with a misaligned region repeats this with every write.
inline bool check_alignment(const char *function, rpma_conn &conn, uint64_t addr) {
    if (addr % RPMA_ATOMIC_WRITE_ALIGNMENT == 0)
        return true;
    if (!conn.warned_of_misalignment.exchange(true))
        RPMA_LOG(RPMA_LOG_LEVEL_WARNING, function,
                 "the remote address is not a multiple of %d: the write may not be atomic",
                 RPMA_ATOMIC_WRITE_ALIGNMENT);
    return false;
}

#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
// Logs the operation that an extended queue pair rejected. Its connection is looked up only
// here: keeping it across the provider's calls would cost a register.
[[gnu::cold, gnu::noinline]] inline int refused_one(const char *function, const ibv_qp_ex *qpx,
                                                    ibv_wr_opcode opcode, uint64_t remote_addr,
                                                    uint64_t length, int result) {
    ibv_send_wr wr = {};
    wr.wr_id = qpx->wr_id;
    wr.opcode = opcode;
    wr.wr.rdma.remote_addr = remote_addr;
    ibv_sge sge = {0, static_cast<uint32_t>(length), 0};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    const auto *conn = static_cast<const rpma_conn *>(handle_of(&qpx->qp_base));
    return refused_natively(function, *conn, wr, nullptr, result);
}

// Posts one operation to an extended queue pair: build() fills it; length is for the log.
template <class Build>
[[gnu::always_inline]] inline int send_natively(const char *function, const rpma_conn &conn,
                                                ibv_wr_opcode opcode, uint64_t remote_addr,
                                                uint64_t length, unsigned send_flags,
                                                const void *op_context, const Build &build) {
    ibv_qp_ex *qpx = conn.extended;
    ibv_wr_start(qpx);
    qpx->wr_id = context_id(op_context);
    qpx->wr_flags = send_flags;
    build(qpx);
    const int result = ibv_wr_complete(qpx);
    return result == 0 ? 0 : refused_one(function, qpx, opcode, remote_addr, length, result);
}
#endif

} // namespace rpma
