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

#ifdef RPMA_NATIVE_FLUSH
namespace {

// A flush that is no read: one of the device, or one that is not allowed.
[[gnu::noinline]] int flush_natively(const rpma_conn *conn, const rpma_mr_remote *dst,
                                     size_t dst_offset, size_t len, rpma_flush_type type,
                                     int flags, const void *op_context) {
    const unsigned types = conn->flush_types.load(std::memory_order_relaxed);
    if (conn->flush_mode != FlushMode::NATIVE || !is_allowed(types & dst->usage, type))
        [[unlikely]]
        return refuse_flush("rpma_flush", *conn, dst, type);
    const uint64_t remote_addr = dst->addr + dst_offset;
    return post_native("rpma_flush", conn, signaled(flags), op_context, remote_addr, len,
                       [&](ibv_qp_ex *qpx) {
                           ibv_wr_flush(qpx, dst->rkey, remote_addr, len,
                                        native_flush_types(type), IBV_FLUSH_RANGE);
                       });
}

} // namespace
#endif

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
        return refuse_flush(__func__, *conn, dst, type);
#endif
    RPMA_REFUSE(dst_offset >= dst->size);
    return flush_by_read(__func__, Post(conn), dst, dst_offset, flags, op_context);
}
