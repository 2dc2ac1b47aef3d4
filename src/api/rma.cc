// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rma.cc -- exports: remote memory access

#include <arpa/inet.h>

#include "api/post.hh"
#include "core/conn.hh"

namespace {

using rpma::api::post_empty;
using rpma::api::post_send;
using rpma::api::refuse;

// What RPMA_REFUSE says of a transfer whose regions do not fit together.
[[gnu::cold, gnu::noinline]] int refuse_regions(const char *function, bool local_is_dst,
                                                const rpma_mr_local *local,
                                                const rpma_mr_remote *remote) {
    const bool no_dst = local_is_dst ? local == nullptr : remote == nullptr;
    const bool no_src = local_is_dst ? remote == nullptr : local == nullptr;
    if (no_dst && no_src)
        return refuse(function, "dst == NULL && src == NULL with an offset or len != 0");
    return refuse(function,
                  no_dst ? "dst == NULL && src != NULL" : "src == NULL && dst != NULL");
}

// The way of rpma_read, rpma_write and rpma_write_with_imm.
[[gnu::always_inline]] inline int transfer(const char *function, ibv_wr_opcode opcode,
                                           rpma_conn *conn, const rpma_mr_local *local,
                                           size_t local_offset, const rpma_mr_remote *remote,
                                           size_t remote_offset, size_t len, int flags,
                                           uint32_t imm, const void *op_context) {
    const unsigned send_flags = rpma::signaled(flags);
    if (local == nullptr || remote == nullptr) [[unlikely]] {
        if (local != nullptr || remote != nullptr || (local_offset | remote_offset | len) != 0)
            return refuse_regions(function, opcode == IBV_WR_RDMA_READ, local, remote);
        return post_empty(function, conn->qp, opcode, send_flags, imm, op_context);
    }
    if (len > UINT32_MAX) [[unlikely]]
        return refuse(function, "len > UINT32_MAX");
    ibv_sge sge = rpma::slice(*local, local_offset, len);
    ibv_send_wr wr;
    rpma::describe(wr, opcode, &sge, send_flags, op_context);
    rpma::address(wr, *remote, remote_offset);
    if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        wr.imm_data = htonl(imm);
    return post_send(function, conn->qp, wr);
}

} // namespace

RPMA_EXPORT int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
                          const struct rpma_mr_remote *src, size_t src_offset, size_t len,
                          int flags, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return transfer(__func__, IBV_WR_RDMA_READ, conn, dst, dst_offset, src, src_offset, len,
                    flags, 0, op_context);
}
RPMA_VERSIONS(rpma_read)

RPMA_EXPORT int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst,
                           size_t dst_offset, const struct rpma_mr_local *src,
                           size_t src_offset, size_t len, int flags, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return transfer(__func__, IBV_WR_RDMA_WRITE, conn, src, src_offset, dst, dst_offset, len,
                    flags, 0, op_context);
}
RPMA_VERSIONS(rpma_write)

RPMA_EXPORT int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst,
                                    size_t dst_offset, const struct rpma_mr_local *src,
                                    size_t src_offset, size_t len, int flags, uint32_t imm,
                                    const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return transfer(__func__, IBV_WR_RDMA_WRITE_WITH_IMM, conn, src, src_offset, dst,
                    dst_offset, len, flags, imm, op_context);
}
RPMA_VERSIONS(rpma_write_with_imm)

namespace {

// Each connection warns once: a program that misaligns a region does so with every write.
[[gnu::cold, gnu::noinline]] void warn_of_misalignment(const char *function, rpma_conn &conn) {
    if (!conn.warned_of_misalignment.exchange(true))
        RPMA_LOG(RPMA_LOG_LEVEL_WARNING, function,
                 "the remote address is not a multiple of %d: the write may not be atomic",
                 RPMA_ATOMIC_WRITE_ALIGNMENT);
}

bool is_misaligned(uint64_t address) {
    return (address % RPMA_ATOMIC_WRITE_ALIGNMENT) != 0;
}

} // namespace

RPMA_EXPORT int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst,
                                  size_t dst_offset, const char src[8], int flags,
                                  const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE(src == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0);
    const unsigned send_flags = rpma::signaled(flags) | IBV_SEND_FENCE;

    if (is_misaligned(dst->addr)) [[unlikely]] {
        warn_of_misalignment(__func__, *conn);
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    } else if (ibv_qp_ex *qpx = conn->native_atomic_write; qpx != nullptr) {
        ibv_wr_start(qpx);
        qpx->wr_id = rpma::context_id(op_context);
        qpx->wr_flags = send_flags;
        ibv_wr_atomic_write(qpx, dst->rkey, dst->addr + dst_offset, src);
        const int error = ibv_wr_complete(qpx);
        return error == 0 ? 0 : rpma::api::post_failed(__func__, "ibv_wr_complete()", error);
#endif
    }

    ibv_sge sge = {reinterpret_cast<uint64_t>(src), RPMA_ATOMIC_WRITE_ALIGNMENT, 0};
    ibv_send_wr wr;
    rpma::describe(wr, IBV_WR_RDMA_WRITE, &sge, send_flags | IBV_SEND_INLINE, op_context);
    rpma::address(wr, *dst, dst_offset);
    return post_send(__func__, conn->qp, wr);
}
RPMA_VERSIONS(rpma_atomic_write)

RPMA_EXPORT int rpma_write_atomic(struct rpma_conn *conn, struct rpma_mr_remote *dst,
                                  size_t dst_offset, const struct rpma_mr_local *src,
                                  size_t src_offset, int flags, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE(src == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0);
    ibv_sge sge = rpma::slice(*src, src_offset, RPMA_ATOMIC_WRITE_ALIGNMENT);
    ibv_send_wr wr;
    rpma::describe(wr, IBV_WR_RDMA_WRITE, &sge, rpma::signaled(flags) | IBV_SEND_FENCE,
                   op_context);
    rpma::address(wr, *dst, dst_offset);
    return post_send(__func__, conn->qp, wr);
}
RPMA_VERSIONS(rpma_write_atomic)

namespace {

// Whether usage has the bit for flushes of type.
bool can_flush(unsigned usage, rpma_flush_type type) {
    static_assert(RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT == 1 << (5 - RPMA_FLUSH_TYPE_PERSISTENT));
    static_assert(RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY == 1 << (5 - RPMA_FLUSH_TYPE_VISIBILITY));
    return (usage >> (5 - type) & 1) != 0;
}

// A flush that the connection or the region does not allow.
[[gnu::cold, gnu::noinline]] int refuse_flush(const char *function, bool allowed) {
    return rpma::api::report(
        function, {RPMA_E_NOSUPP,
                   allowed ? "the remote region was not registered for this flush type"
                           : "the other side did not say that it has direct write to PMem"});
}

} // namespace

RPMA_EXPORT int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst,
                           size_t dst_offset, size_t len, enum rpma_flush_type type, int flags,
                           const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(type != RPMA_FLUSH_TYPE_PERSISTENT && type != RPMA_FLUSH_TYPE_VISIBILITY);
    RPMA_REFUSE(len > UINT32_MAX);
    const unsigned allowed = conn->flush_types.load(std::memory_order_relaxed);
    if (!can_flush(allowed & dst->usage, type)) [[unlikely]]
        return refuse_flush(__func__, can_flush(allowed, type));

#ifdef RPMA_NATIVE_FLUSH
    if (ibv_qp_ex *qpx = conn->native_flush; qpx != nullptr) {
        ibv_wr_start(qpx);
        qpx->wr_id = rpma::context_id(op_context);
        qpx->wr_flags = rpma::signaled(flags);
        ibv_wr_flush(qpx, dst->rkey, dst->addr + dst_offset, len,
                     type == RPMA_FLUSH_TYPE_PERSISTENT ? IBV_FLUSH_PERSISTENT
                                                        : IBV_FLUSH_GLOBAL,
                     IBV_FLUSH_RANGE);
        const int error = ibv_wr_complete(qpx);
        return error == 0 ? 0 : rpma::api::post_failed(__func__, "ibv_wr_complete()", error);
    }
#endif

    RPMA_REFUSE(dst_offset >= dst->size);
    ibv_sge sge = conn->flush_read;
    const uint64_t rest = dst->size - dst_offset;
    if (rest < rpma::FLUSH_READ_SIZE) [[unlikely]]
        sge.length = static_cast<uint32_t>(rest);
    ibv_send_wr wr;
    rpma::describe(wr, IBV_WR_RDMA_READ, &sge, rpma::signaled(flags), op_context);
    rpma::address(wr, *dst, dst_offset);
    return post_send(__func__, conn->qp, wr);
}
RPMA_VERSIONS(rpma_flush)
