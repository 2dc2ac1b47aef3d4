// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// post.hh -- posting of work requests: a return code for the caller, failures out of line

#pragma once

#include <arpa/inet.h>
#include <cinttypes>

#include "api/export.hh"
#include "core/conn.hh"
#include "core/work_request.hh"
#include "verbs/objects.hh"
#include "verbs/text.hh"

namespace rpma {

// The error number of a post that returned result, 0 if it is none. Most providers return one;
// cxgb4 returns it negated (c4iw_post_send()), and mthca -1 for every cause
// (mthca_tavor_post_send()).
inline int post_error(int result) {
    return result == -1 ? 0 : result < 0 ? -result : result;
}

// Whether a queue has no room. ENOSPC is what the extended queue pairs of rxe say
// (check_qp_queue_full()).
inline bool is_full(int result) {
    return post_error(result) == ENOMEM || post_error(result) == ENOSPC;
}

// What stands behind a failed post: setting is the function that sets the size of the queue;
// room is how much that holds, 0 if it is not known.
inline Text post_advice(int result, const char *queue, uint32_t room, const char *setting) {
    Text text;
    if (post_error(result) == 0)
        text.add(" failed, the provider gives no reason");
    if (!is_full(result))
        return text;
    text.add("; the %s queue is full", queue);
    if (room != 0)
        text.add(", it holds %" PRIu32, room);
    text.add(": take completions before more is posted, or make it larger with %s()", setting);
    return text;
}

// Bytes that the provider is to copy while it takes a request. By value, so that a failed post
// hands over no request but the members that are read.
inline uint64_t inline_bytes(unsigned send_flags, const ibv_sge *sges, int num_sge) {
    uint64_t bytes = 0;
    if ((send_flags & IBV_SEND_INLINE) != 0)
        for (int i = 0; i < num_sge; i++)
            bytes += sges[i].length;
    return bytes;
}

// bytes is how many the request was to carry inline. Too many of them are asked for first: a
// provider may say ENOMEM (mlx5) or ENOSPC (wr_set_inline_data() of rxe) as of a full queue.
inline Text send_advice(int result, const ibv_qp &qp, uint64_t bytes) {
    const auto [room, most] = granted(qp);
    if (bytes <= most)
        return post_advice(result, "send", room, "rpma_conn_cfg_set_sq_size");
    Text text;
    text.add("; %" PRIu64 " bytes are to go inline, the connection takes %" PRIu32
             " at most: make it more with rpma_conn_cfg_set_inline_size()",
             bytes, most);
    return text;
}

// Which operations of a batch a call of the provider was given.
struct Part {
    uint32_t first, last; // from 1
    uint32_t all;         // of the batch
    const char *state;    // what became of them, "" if the provider refused them
};

inline Text part_text(const Part *part) {
    Text text;
    if (part == nullptr)
        return text;
    text.add("operation");
    if (part->first != part->last)
        text.add("s %" PRIu32 " to", part->first);
    text.add(" %" PRIu32 " of %" PRIu32 "%s: ", part->last, part->all, part->state);
    return text;
}

// The request comes by value: its address would be kept over the provider's call.
[[gnu::cold, gnu::noinline]] inline int
post_send_failed(const char *function, ibv_send_wr wr, int result, const Part *part = nullptr) {
    Call call(function);
    const ibv_sge none = {};
    const ibv_sge &sge = wr.num_sge > 0 ? wr.sg_list[0] : none;
    const ibv_qp &qp = *static_cast<ibv_qp *>(wr.tso.hdr);
    const bool is_send = wr.opcode == IBV_WR_SEND || wr.opcode == IBV_WR_SEND_WITH_IMM;
    // Without RPMA_FAIL, whose lambda would take the address of the request.
    if (call.fails(RPMA_E_PROVIDER, post_error(result)))
        call.log(
            __FILE__, __LINE__,
            send_advice(result, qp, inline_bytes(wr.send_flags, wr.sg_list, wr.num_sge)).chars,
            "%sibv_post_send(opcode=%s, remote_addr=0x%" PRIx64 ", addr=0x%" PRIx64
            ", length=%" PRIu32 ", wr_id=0x%" PRIx64 ", send_flags=%s)",
            part_text(part).chars, opcode_text(wr.opcode).chars, wr.wr.rdma.remote_addr,
            sge.addr, sge.length, wr.wr_id, send_flags_text(wr.send_flags).chars);
    // Who has a key may use the memory: keys are for debugging only.
    RPMA_LOG(RPMA_LOG_LEVEL_DEBUG, function, "rkey=0x%" PRIx32 ", lkey=0x%" PRIx32,
             is_send ? 0 : wr.wr.rdma.rkey, sge.lkey);
    return call.finish();
}

[[gnu::always_inline]] inline int post_send(const char *function, const rpma_conn *conn,
                                            ibv_send_wr &wr) {
    // For the failure alone. It outlives the provider's call here at the price of one store:
    // only IBV_WR_TSO reads this member.
    wr.tso.hdr = conn->qp;
    ibv_send_wr *bad;
    const int result = ibv_post_send(conn->qp, &wr, &bad);
    return result == 0 ? 0 : post_send_failed(function, wr, result);
}

#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
[[gnu::cold, gnu::noinline]] inline int post_native_failed(const char *function,
                                                           const ibv_qp &qp,
                                                           uint64_t remote_addr, size_t len,
                                                           int result) {
    Call call(function);
    RPMA_FAIL_ADVISING(
        call, RPMA_E_PROVIDER, post_error(result), send_advice(result, qp, 0).chars,
        "ibv_wr_complete(remote_addr=0x%" PRIx64 ", length=%zu)", remote_addr, len);
    return call.finish();
}

// build posts one operation of an extended queue pair.
template <class Build>
int post_native(const char *function, const rpma_conn *conn, uint64_t send_flags,
                const void *op_context, uint64_t remote_addr, size_t len, const Build &build) {
    ibv_qp_ex *qpx = conn->extended;
    ibv_wr_start(qpx);
    qpx->wr_id = context_id(op_context);
    qpx->wr_flags = static_cast<unsigned>(send_flags);
    build(qpx);
    const int result = ibv_wr_complete(qpx);
    return result == 0 ? 0
                       : post_native_failed(function, qpx->qp_base, remote_addr, len, result);
}
#endif

// An operation without a region: the other side may notice, no memory is touched. Out of line:
// rare, and the usual way needs no register for what is constant there.
[[gnu::noinline]] inline int post_empty(const char *function, const rpma_conn *conn,
                                        ibv_wr_opcode opcode, uint64_t send_flags, uint32_t imm,
                                        const void *op_context) {
    ibv_send_wr wr;
    wr.next = nullptr;
    wr.sg_list = nullptr;
    describe(wr, opcode, 0, send_flags, imm, op_context);
    wr.wr.rdma = {0, 0};
    return post_send(function, conn, wr);
}

} // namespace rpma
