// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rma.cc -- exports: remote memory access

#include "api/post.hh"

using namespace rpma;

namespace {

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
    const uint64_t send_flags = signaled(flags);
    if (local == nullptr || remote == nullptr) [[unlikely]] {
        if (local != nullptr || remote != nullptr || (local_offset | remote_offset | len) != 0)
            return refuse_regions(function, opcode == IBV_WR_RDMA_READ, local, remote);
        return post_empty(function, conn, opcode, send_flags, imm, op_context);
    }
    if (len > UINT32_MAX) [[unlikely]]
        return refuse(function, "len > UINT32_MAX");
    ibv_sge sge = slice(*local, local_offset, len);
    ibv_send_wr wr;
    describe(wr, opcode, &sge, send_flags, imm, op_context);
    address(wr, *remote, remote_offset);
    return post_send(function, conn, wr);
}

} // namespace

int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
              const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
              const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return transfer(__func__, IBV_WR_RDMA_READ, conn, dst, dst_offset, src, src_offset, len,
                    flags, 0, op_context);
}

int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
               const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
               const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return transfer(__func__, IBV_WR_RDMA_WRITE, conn, src, src_offset, dst, dst_offset, len,
                    flags, 0, op_context);
}

int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                        const struct rpma_mr_local *src, size_t src_offset, size_t len,
                        int flags, uint32_t imm, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return transfer(__func__, IBV_WR_RDMA_WRITE_WITH_IMM, conn, src, src_offset, dst,
                    dst_offset, len, flags, imm, op_context);
}

namespace {

// For devices without atomic write: 8 bytes in one packet, after all reads before them.
[[gnu::always_inline]] inline int write_fenced(const char *function, const rpma_conn *conn,
                                               const rpma_mr_remote *dst, size_t dst_offset,
                                               const char *src, int flags,
                                               const void *op_context) {
    ibv_sge sge = {reinterpret_cast<uintptr_t>(src), RPMA_ATOMIC_WRITE_ALIGNMENT, 0};
    ibv_send_wr wr;
    describe(wr, IBV_WR_RDMA_WRITE, &sge, signaled(flags) | IBV_SEND_FENCE | IBV_SEND_INLINE, 0,
             op_context);
    address(wr, *dst, dst_offset);
    return post_send(function, conn, wr);
}

// Each connection warns once: a program that misaligns a region does so with every write. In
// its place, not before the usual way, which would have to save its arguments for this.
[[gnu::cold, gnu::noinline]] int write_misaligned(rpma_conn *conn, const rpma_mr_remote *dst,
                                                  size_t dst_offset, const char *src, int flags,
                                                  const void *op_context) {
    if (!conn->warned_of_misalignment.exchange(true))
        RPMA_LOG(RPMA_LOG_LEVEL_WARNING, "rpma_atomic_write",
                 "the remote address is not a multiple of %d: the write may not be atomic",
                 RPMA_ATOMIC_WRITE_ALIGNMENT);
    return write_fenced("rpma_atomic_write", conn, dst, dst_offset, src, flags, op_context);
}

#ifdef RPMA_NATIVE_ATOMIC_WRITE
// Out of line, like all that the device does itself: what has to survive the provider's calls
// would cost every other device a frame.
[[gnu::noinline]] int write_natively(const rpma_conn *conn, const rpma_mr_remote *dst,
                                     size_t dst_offset, const char *src, int flags,
                                     const void *op_context) {
    const uint64_t remote_addr = dst->addr + dst_offset;
    return post_native("rpma_atomic_write", conn, signaled(flags) | IBV_SEND_FENCE, op_context,
                       remote_addr, RPMA_ATOMIC_WRITE_ALIGNMENT, [&](ibv_qp_ex *qpx) {
                           ibv_wr_atomic_write(qpx, dst->rkey, remote_addr, src);
                       });
}
#endif

} // namespace

int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                      const char src[8], int flags, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE(src == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0);
    if (dst->addr % RPMA_ATOMIC_WRITE_ALIGNMENT != 0) [[unlikely]]
        return write_misaligned(conn, dst, dst_offset, src, flags, op_context);
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    if (conn->writes_natively) [[unlikely]]
        return write_natively(conn, dst, dst_offset, src, flags, op_context);
#endif
    return write_fenced(__func__, conn, dst, dst_offset, src, flags, op_context);
}

int rpma_write_atomic(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                      const struct rpma_mr_local *src, size_t src_offset, int flags,
                      const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE(src == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0);
    ibv_sge sge = slice(*src, src_offset, RPMA_ATOMIC_WRITE_ALIGNMENT);
    ibv_send_wr wr;
    describe(wr, IBV_WR_RDMA_WRITE, &sge, signaled(flags) | IBV_SEND_FENCE, 0, op_context);
    address(wr, *dst, dst_offset);
    return post_send(__func__, conn, wr);
}

namespace {

// The bit of a region's usage, and of a connection's flushes, that allows flushes of a type.
constexpr unsigned usage_of(rpma_flush_type type) {
    return type == RPMA_FLUSH_TYPE_PERSISTENT ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT
                                              : RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
}

// Whether usage has that bit; a choice between two bits would cost each flush two instructions.
inline bool is_allowed(unsigned usage, rpma_flush_type type) {
    constexpr int LAST = 5;
    static_assert(usage_of(RPMA_FLUSH_TYPE_PERSISTENT) ==
                  1U << (LAST - RPMA_FLUSH_TYPE_PERSISTENT));
    static_assert(usage_of(RPMA_FLUSH_TYPE_VISIBILITY) ==
                  1U << (LAST - RPMA_FLUSH_TYPE_VISIBILITY));
    return (usage >> (LAST - type) & 1) != 0;
}

// A flush that the connection or the region does not allow.
[[gnu::cold, gnu::noinline]] int refuse_flush(const rpma_conn *conn, const rpma_mr_remote *dst,
                                              rpma_flush_type type) {
    Call call("rpma_flush");
    if ((conn->flush_types & usage_of(type)) == 0)
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "the other side did not say that it has direct write to PMem: apply its peer "
                  "configuration with rpma_conn_apply_remote_peer_cfg() first");
    else
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "the remote region was not registered with %s (its usage is 0x%" PRIx32 ")",
                  type == RPMA_FLUSH_TYPE_PERSISTENT ? "RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT"
                                                     : "RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY",
                  dst->usage);
    return call.finish();
}

[[gnu::always_inline]] inline int flush_by_read(const rpma_conn *conn,
                                                const rpma_mr_remote *dst, size_t dst_offset,
                                                int flags, const void *op_context) {
    ibv_sge sge = conn->flush_read;
    const uint64_t rest = dst->size - dst_offset;
    if (rest < FLUSH_READ_SIZE) [[unlikely]]
        sge.length = static_cast<uint32_t>(rest);
    ibv_send_wr wr;
    describe(wr, IBV_WR_RDMA_READ, &sge, signaled(flags), 0, op_context);
    address(wr, *dst, dst_offset);
    return post_send("rpma_flush", conn, wr);
}

#ifdef RPMA_NATIVE_FLUSH
// A flush that is no read: one of the device, or one that is not allowed.
[[gnu::noinline]] int flush_natively(const rpma_conn *conn, const rpma_mr_remote *dst,
                                     size_t dst_offset, size_t len, rpma_flush_type type,
                                     int flags, const void *op_context) {
    const unsigned types = conn->flush_types.load(std::memory_order_relaxed);
    if (conn->flush_mode != FlushMode::NATIVE || !is_allowed(types & dst->usage, type))
        [[unlikely]]
        return refuse_flush(conn, dst, type);
    const uint8_t what =
        type == RPMA_FLUSH_TYPE_PERSISTENT ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL;
    const uint64_t remote_addr = dst->addr + dst_offset;
    return post_native(
        "rpma_flush", conn, signaled(flags), op_context, remote_addr, len, [&](ibv_qp_ex *qpx) {
            ibv_wr_flush(qpx, dst->rkey, remote_addr, len, what, IBV_FLUSH_RANGE);
        });
}
#endif

} // namespace

int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
               size_t len, enum rpma_flush_type type, int flags, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(type != RPMA_FLUSH_TYPE_PERSISTENT && type != RPMA_FLUSH_TYPE_VISIBILITY);
    RPMA_REFUSE(len > UINT32_MAX);
    const unsigned types = conn->read_flushes.load(std::memory_order_relaxed);
    if (!is_allowed(types & dst->usage, type)) [[unlikely]]
#ifdef RPMA_NATIVE_FLUSH
        return flush_natively(conn, dst, dst_offset, len, type, flags, op_context);
#else
        return refuse_flush(conn, dst, type);
#endif
    RPMA_REFUSE(dst_offset >= dst->size);
    return flush_by_read(conn, dst, dst_offset, flags, op_context);
}
