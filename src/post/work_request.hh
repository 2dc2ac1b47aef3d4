// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// work_request.hh -- checks SGEs, sets the members of one work request and posts it
//
// Only those members are set that the opcode of the request reads. The other members of the
// ibv_send_wr stay uninitialised on the stack: clearing 128 bytes would cost more than the rest
// of a post.

#pragma once

#include "core/conn.hh"
#include "post/failures.hh"
#include "verbs/tuned.hh"

namespace rpma {

// RPMA_F_COMPLETION_ALWAYS without the bit that every operation has.
inline unsigned signaled_flag(int flags) {
    static_assert(IBV_SEND_SIGNALED ==
                  (RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR));
    return static_cast<unsigned>(flags) & IBV_SEND_SIGNALED;
}

// The same, and RPMA_F_INLINE. Only operations that send data may have it: for a read, rxe
// would copy the destination memory (init_send_wqe() of rdma-core 56).
inline unsigned write_flags(int flags) {
    static_assert(IBV_SEND_INLINE == RPMA_F_INLINE);
    return static_cast<unsigned>(flags) & (IBV_SEND_SIGNALED | IBV_SEND_INLINE);
}

// The same for messages and immediate data, which may also be solicited.
inline unsigned message_flags(int flags) {
    static_assert(IBV_SEND_SOLICITED == RPMA_F_SOLICITED);
    return static_cast<unsigned>(flags) &
           (IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_SOLICITED);
}

inline ibv_sge make_sge(const rpma_mr_local &mr, std::size_t offset, std::size_t len) {
    return {mr.addr + offset, static_cast<uint32_t>(len), mr.lkey};
}

// The largest number of SGEs of an operation, and the values that the log shows.
struct SgeLimit {
    uint32_t max;
    uint32_t requested; // with the setter; max may be less, for reads
    const char *setter; // its name
};

inline SgeLimit sge_limit(const rpma_conn &conn, rpma_work_type type) {
    return {type == RPMA_WORK_READ ? conn.max_read_sge : conn.max_sge, conn.max_sge,
            CONN_SGE_SETTER};
}

struct SgeList {
    const rpma_sge *sgl;
    uint32_t nsge;
};

// Returns the SGEs of an operation: its list, or the single one in local if the list is empty.
// sgl is nullptr if they are rejected, which is logged.
inline SgeList choose_sges(const CallSite &site, const rpma_sge &local, const rpma_sge *sgl,
                           uint32_t nsge) {
    if (nsge != 0) {
        if (sgl == nullptr)
            refuse(site, __FILE_NAME__, __LINE__, "sgl is NULL, nsge is %" PRIu32, nsge);
        return {sgl, nsge};
    }
    if (sgl != nullptr) {
        refuse(site, __FILE_NAME__, __LINE__, "sgl != NULL && nsge == 0");
        return {};
    }
    if (local.mr == nullptr && (local.offset | local.len) != 0) {
        refuse(site, __FILE_NAME__, __LINE__, RPMA_NO_MEMORY, "local.mr", local.offset,
               local.len);
        return {};
    }
    return {&local, 1};
}

// Checks the SGEs and writes those that are not empty to sges. Returns their number, or -1 if
// one is not valid, which is logged.
int build_sges(const CallSite &site, SgeList list, const SgeLimit &limit, ibv_sge *sges);

// The most operations of an array in one call of the provider.
inline constexpr uint32_t MAX_CHUNK = 16;

inline uint64_t wr_id_of(const void *op_context) {
    return reinterpret_cast<uintptr_t>(op_context);
}

// The caller sets the list of SGEs and the next request. Providers copy the immediate data for
// every opcode (ibv_cmd_post_send() of libibverbs, rxe_post_send() of rxe).
inline void set_wr(ibv_send_wr &wr, ibv_wr_opcode opcode, int num_sge, uint64_t flags,
                   uint32_t imm, const void *op_context) {
    wr.wr_id = wr_id_of(op_context);
    wr.num_sge = num_sge;
    wr.opcode = opcode;
    set_flags(wr, flags, imm);
}

inline void set_remote(ibv_send_wr &wr, const rpma_mr_remote &mr, std::size_t offset) {
    wr.wr.rdma.remote_addr = mr.addr + offset;
    wr.wr.rdma.rkey = mr.rkey;
}

// For an operation without remote memory. init_send_wqe() of rxe copies the address, and
// push_send_wqe() of siw the key as well.
inline void clear_remote(ibv_send_wr &wr) {
    wr.wr.rdma = {0, 0};
}

// One work request, and the connection that posts it, see tuned.hh.
struct Request {
    ibv_sge sge;
    ibv_send_wr wr;
    const rpma_conn *conn;
};

[[gnu::always_inline]] inline int post_request(const char *function, const rpma_conn &conn,
                                               Request &request) {
    ibv_send_wr &wr = request.wr;
    wr.next = nullptr;
    request.conn = &conn;
    ibv_send_wr *bad;
    const int result = ibv_post_send(conn.qp, &wr, &bad);
    if (result == 0) [[likely]]
        return 0;
    if (!is_logged(RPMA_LOG_LEVEL_ERROR))
        return fail_unlogged(function, *request.conn, wr.opcode, wr.wr_id, result);
    return fail_send(function, *request.conn,
                     {wr.wr_id, wr.wr.rdma.remote_addr, request.sge, wr.wr.rdma.rkey, wr.opcode,
                      wr.send_flags},
                     result);
}

// Posts an operation with memory on both sides, or a message.
[[gnu::always_inline]] inline int post_request(const char *function, const rpma_conn &conn,
                                               Request &request, const ibv_sge &sge) {
    request.sge = sge;
    request.wr.sg_list = &request.sge;
    return post_request(function, conn, request);
}

#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
// Logs the operation that an extended queue pair rejected. Its connection is looked up only
// here: keeping it across the provider's calls would cost a register.
[[gnu::cold, gnu::noinline]] inline int
fail_one_native(const char *function, const ibv_qp_ex *qpx, ibv_wr_opcode opcode,
                uint64_t remote_addr, uint64_t length, int result) {
    ibv_send_wr wr = {};
    wr.wr_id = qpx->wr_id;
    wr.opcode = opcode;
    wr.wr.rdma.remote_addr = remote_addr;
    ibv_sge sge = {0, static_cast<uint32_t>(length), 0};
    wr.sg_list = &sge;
    wr.num_sge = 1;
    const auto *conn = static_cast<const rpma_conn *>(handle_of(&qpx->qp_base));
    return fail_native(function, *conn, wr, nullptr, result);
}

// Posts one operation to an extended queue pair: build() fills it; length is for the log.
template <class Build>
[[gnu::always_inline]] inline int post_native(const char *function, const rpma_conn &conn,
                                              ibv_wr_opcode opcode, uint64_t remote_addr,
                                              uint64_t length, unsigned send_flags,
                                              const void *op_context, const Build &build) {
    ibv_qp_ex *qpx = conn.extended;
    ibv_wr_start(qpx);
    qpx->wr_id = wr_id_of(op_context);
    qpx->wr_flags = send_flags;
    build(qpx);
    const int result = ibv_wr_complete(qpx);
    return result == 0 ? 0
                       : fail_one_native(function, qpx, opcode, remote_addr, length, result);
}
#endif

} // namespace rpma
