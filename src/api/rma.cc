// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rma.cc -- exports: remote memory access

#include "api/list.hh"

using namespace rpma;

int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
              const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
              const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return transfer(__func__, Post(conn), IBV_WR_RDMA_READ, dst, dst_offset, src, src_offset,
                    len, flags, 0, op_context);
}

int rpma_readv(struct rpma_conn *conn, const struct rpma_sge *sgl, int nsge,
               const struct rpma_mr_remote *src, size_t src_offset, int flags,
               const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return transfer_list(__func__, Post(conn), IBV_WR_RDMA_READ, sgl, nsge,
                         conn->max_read_sge(), src, src_offset, flags, 0, op_context);
}

int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
               const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
               const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return transfer(__func__, Post(conn), IBV_WR_RDMA_WRITE, src, src_offset, dst, dst_offset,
                    len, flags, 0, op_context);
}

int rpma_writev(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                const struct rpma_sge *sgl, int nsge, int flags, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return transfer_list(__func__, Post(conn), IBV_WR_RDMA_WRITE, sgl, nsge, conn->max_sge(),
                         dst, dst_offset, flags, 0, op_context);
}

int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                        const struct rpma_mr_local *src, size_t src_offset, size_t len,
                        int flags, uint32_t imm, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return transfer(__func__, Post(conn), IBV_WR_RDMA_WRITE_WITH_IMM, src, src_offset, dst,
                    dst_offset, len, flags, imm, op_context);
}

int rpma_writev_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                         const struct rpma_sge *sgl, int nsge, int flags, uint32_t imm,
                         const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(flags == 0);
    return transfer_list(__func__, Post(conn), IBV_WR_RDMA_WRITE_WITH_IMM, sgl, nsge,
                         conn->max_sge(), dst, dst_offset, flags, imm, op_context);
}

namespace {

// In its place, not before the usual way, which would have to save its arguments for this.
[[gnu::cold, gnu::noinline]] int write_misaligned(rpma_conn *conn, const rpma_mr_remote *dst,
                                                  size_t dst_offset, const char *src, int flags,
                                                  const void *op_context) {
    warn_of_misalignment("rpma_atomic_write", *conn);
    return write_inline("rpma_atomic_write", Post(conn), dst, dst_offset, src, flags,
                        op_context);
}

#ifdef RPMA_NATIVE_ATOMIC_WRITE
// Out of line, like all that the device does itself: what has to survive the provider's calls
// would cost every other device a frame. Flags that are constant need not survive.
template <unsigned SEND_FLAGS>
[[gnu::noinline]] int write_natively(const rpma_conn *conn, const rpma_mr_remote *dst,
                                     size_t dst_offset, const char *src,
                                     const void *op_context) {
    const uint64_t remote_addr = dst->addr + dst_offset;
    return post_native("rpma_atomic_write", conn, SEND_FLAGS | IBV_SEND_FENCE, op_context,
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
    uint64_t special = dst->addr;
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    special |= conn->writes_natively.load(std::memory_order_relaxed);
#endif
    if (special % RPMA_ATOMIC_WRITE_ALIGNMENT != 0) [[unlikely]] {
        if (dst->addr % RPMA_ATOMIC_WRITE_ALIGNMENT != 0)
            return write_misaligned(conn, dst, dst_offset, src, flags, op_context);
#ifdef RPMA_NATIVE_ATOMIC_WRITE
        return signaled(flags) != 0
                   ? write_natively<IBV_SEND_SIGNALED>(conn, dst, dst_offset, src, op_context)
                   : write_natively<0>(conn, dst, dst_offset, src, op_context);
#endif
    }
    return write_inline(__func__, Post(conn), dst, dst_offset, src, flags, op_context);
}

int rpma_write_atomic(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                      const struct rpma_mr_local *src, size_t src_offset, int flags,
                      const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE(src == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0);
    return write_fenced(__func__, Post(conn), dst, dst_offset,
                        slice(*src, src_offset, RPMA_ATOMIC_WRITE_ALIGNMENT), signaled(flags),
                        op_context);
}

namespace {

// A flush whose way is not open: the first one of its connection, or one that is not allowed.
[[gnu::cold, gnu::noinline]] int flush_first(rpma_conn *conn, rpma_mr_remote *dst,
                                             size_t dst_offset, size_t len,
                                             rpma_flush_type type, int flags,
                                             const void *op_context) {
    if (!is_allowed(conn->allowed_flushes() & dst->flush_usage, type))
        return refuse_flush("rpma_flush", *conn, dst, type);
    conn->begin_flushes();
    return rpma_flush(conn, dst, dst_offset, len, type, flags, op_context);
}

#ifdef RPMA_NATIVE_FLUSH
// A flush that is no read.
[[gnu::noinline]] int flush_natively(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset,
                                     size_t len, rpma_flush_type type, int flags,
                                     const void *op_context) {
    const uint32_t flushes = conn->flushes.load(std::memory_order_relaxed) & dst->flush_usage;
    if (!is_allowed(flushes >> FLUSH_NATIVELY, type)) [[unlikely]]
        return flush_first(conn, dst, dst_offset, len, type, flags, op_context);
    const uint64_t remote_addr = dst->addr + dst_offset;
    return post_native("rpma_flush", conn, signaled(flags), op_context, remote_addr, len,
                       [&](ibv_qp_ex *qpx) {
                           ibv_wr_flush(qpx, dst->rkey, remote_addr, len,
                                        native_flush_types(type), IBV_FLUSH_RANGE);
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
    const uint32_t flushes = conn->flushes.load(std::memory_order_relaxed) & dst->flush_usage;
    if (!is_allowed(flushes, type)) [[unlikely]]
#ifdef RPMA_NATIVE_FLUSH
        return flush_natively(conn, dst, dst_offset, len, type, flags, op_context);
#else
        return flush_first(conn, dst, dst_offset, len, type, flags, op_context);
#endif
    RPMA_REFUSE(dst_offset >= dst->size);
    return flush_by_read(__func__, Post(conn), dst, dst_offset, flags, op_context);
}
