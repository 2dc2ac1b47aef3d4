// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rma.cc -- exports: reads, writes, atomic writes and flushes, one at a time
//
// The fast path of an operation is one condition and one work request. The slow path is out of
// line, in a function with the same arguments: it logs each argument that is not valid, and
// posts operations without memory.

#include "post/entry.hh"

using namespace rpma;

namespace {

// One of dst and src is a local region, the other one a remote region.
template <class Dst, class Src>
[[gnu::always_inline]] inline int
transfer_slow(const char *function, ibv_wr_opcode opcode, rpma_conn *conn, Dst *dst,
              size_t dst_offset, const Src *src, size_t src_offset, size_t len, int flags,
              unsigned send_flags, uint32_t imm, const void *op_context) {
    RPMA_REFUSE_IN(function, conn == NULL);
    RPMA_REFUSE_FLAGS(function, flags);
    RPMA_REFUSE_IN(function, dst == NULL && src != NULL);
    RPMA_REFUSE_IN(function, src == NULL && dst != NULL);
    RPMA_REFUSE_AS(
        function, dst == NULL && (dst_offset | src_offset | len) != 0,
        "dst and src are NULL, offsets %zu and %zu, len %zu; possible without memory: "
        "0, 0 and 0",
        dst_offset, src_offset, len);
    RPMA_REFUSE_LENGTH(function, len);
    return post_empty(function, *conn, opcode, send_flags, imm, op_context);
}

[[gnu::cold, gnu::noinline]] int read_slow(rpma_conn *conn, rpma_mr_local *dst,
                                           size_t dst_offset, const rpma_mr_remote *src,
                                           size_t src_offset, size_t len, int flags,
                                           const void *op_context) {
    return transfer_slow("rpma_read", IBV_WR_RDMA_READ, conn, dst, dst_offset, src, src_offset,
                         len, flags, signaled_flag(flags), 0, op_context);
}

[[gnu::cold, gnu::noinline]] int write_slow(const char *function, ibv_wr_opcode opcode,
                                            rpma_conn *conn, rpma_mr_remote *dst,
                                            size_t dst_offset, const rpma_mr_local *src,
                                            size_t src_offset, size_t len, int flags,
                                            uint32_t imm, const void *op_context) {
    return transfer_slow(function, opcode, conn, dst, dst_offset, src, src_offset, len, flags,
                         opcode == IBV_WR_RDMA_WRITE ? write_flags(flags)
                                                     : message_flags(flags),
                         imm, op_context);
}

// Same parameters as the exported function, so that its tail call moves no register.
[[gnu::cold, gnu::noinline]] int write_slow(rpma_conn *conn, rpma_mr_remote *dst,
                                            size_t dst_offset, const rpma_mr_local *src,
                                            size_t src_offset, size_t len, int flags,
                                            const void *op_context) {
    return write_slow("rpma_write", IBV_WR_RDMA_WRITE, conn, dst, dst_offset, src, src_offset,
                      len, flags, 0, op_context);
}

} // namespace

RPMA_POST int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
                        const struct rpma_mr_remote *src, size_t src_offset, size_t len,
                        int flags, const void *op_context) {
    if (conn == nullptr || dst == nullptr || src == nullptr || flags == 0 || len >> 32 != 0)
        [[unlikely]]
        return read_slow(conn, dst, dst_offset, src, src_offset, len, flags, op_context);
    Request request;
    set_wr(request.wr, IBV_WR_RDMA_READ, 1, signaled_flag(flags), 0, op_context);
    set_remote(request.wr, *src, src_offset);
    return post_request(__func__, *conn, request, make_sge(*dst, dst_offset, len));
}

RPMA_POST int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                         const struct rpma_mr_local *src, size_t src_offset, size_t len,
                         int flags, const void *op_context) {
    if (conn == nullptr || dst == nullptr || src == nullptr || flags == 0 || len >> 32 != 0)
        [[unlikely]]
        return write_slow(conn, dst, dst_offset, src, src_offset, len, flags, op_context);
    Request request;
    set_wr(request.wr, IBV_WR_RDMA_WRITE, 1, write_flags(flags), 0, op_context);
    set_remote(request.wr, *dst, dst_offset);
    return post_request(__func__, *conn, request, make_sge(*src, src_offset, len));
}

RPMA_POST int rpma_write_with_imm(struct rpma_conn *conn, struct rpma_mr_remote *dst,
                                  size_t dst_offset, const struct rpma_mr_local *src,
                                  size_t src_offset, size_t len, int flags, uint32_t imm,
                                  const void *op_context) {
    if (conn == nullptr || dst == nullptr || src == nullptr || flags == 0 || len >> 32 != 0)
        [[unlikely]]
        return write_slow(__func__, IBV_WR_RDMA_WRITE_WITH_IMM, conn, dst, dst_offset, src,
                          src_offset, len, flags, imm, op_context);
    Request request;
    set_wr(request.wr, IBV_WR_RDMA_WRITE_WITH_IMM, 1, message_flags(flags), imm, op_context);
    set_remote(request.wr, *dst, dst_offset);
    return post_request(__func__, *conn, request, make_sge(*src, src_offset, len));
}

namespace {

// Emulates an atomic write: a write of 8 bytes in one packet, after all earlier reads.
[[gnu::always_inline]] inline int write_fenced(const char *function, const rpma_conn &conn,
                                               const rpma_mr_remote &dst, size_t dst_offset,
                                               const ibv_sge &bytes, unsigned send_flags,
                                               const void *op_context) {
    Request request;
    set_wr(request.wr, IBV_WR_RDMA_WRITE, 1, send_flags | IBV_SEND_FENCE, 0, op_context);
    set_remote(request.wr, dst, dst_offset);
    return post_request(function, conn, request, bytes);
}

// Sends the caller's data inline: the provider copies it during the call.
[[gnu::always_inline]] inline int write_inline(const char *function, const rpma_conn &conn,
                                               const rpma_mr_remote &dst, size_t dst_offset,
                                               const char *src, int flags,
                                               const void *op_context) {
    const ibv_sge bytes = {reinterpret_cast<uintptr_t>(src), RPMA_ATOMIC_WRITE_ALIGNMENT, 0};
    return write_fenced(function, conn, dst, dst_offset, bytes,
                        signaled_flag(flags) | IBV_SEND_INLINE, op_context);
}

// Slow path: an argument is not valid, or the address is misaligned.
[[gnu::noinline]] int atomic_write_slow(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset,
                                        const char *src, int flags, const void *op_context) {
    static constexpr char function[] = "rpma_atomic_write";
    RPMA_REFUSE_IN(function, conn == NULL);
    RPMA_REFUSE_IN(function, dst == NULL);
    RPMA_REFUSE_IN(function, src == NULL);
    RPMA_REFUSE_FLAGS(function, flags);
    RPMA_REFUSE_VALUE(function, dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0, dst_offset,
                      "multiples of 8");
    check_alignment(function, *conn, dst->addr);
    return write_inline(function, *conn, *dst, dst_offset, src, flags, op_context);
}

#ifdef RPMA_NATIVE_ATOMIC_WRITE
[[gnu::noinline]] RPMA_POST int write_native(rpma_conn *conn, rpma_mr_remote *dst,
                                             size_t dst_offset, const char *src, int flags,
                                             const void *op_context) {
    const uint64_t remote_addr = dst->addr + dst_offset;
    return post_native(
        "rpma_atomic_write", *conn, IBV_WR_ATOMIC_WRITE, remote_addr,
        RPMA_ATOMIC_WRITE_ALIGNMENT, signaled_flag(flags) | IBV_SEND_FENCE, op_context,
        [&](ibv_qp_ex *qpx) { ibv_wr_atomic_write(qpx, dst->rkey, remote_addr, src); });
}
#endif

} // namespace

RPMA_POST int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst,
                                size_t dst_offset, const char src[8], int flags,
                                const void *op_context) {
    if (conn == nullptr || dst == nullptr || src == nullptr || flags == 0 ||
        dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0 ||
        dst->addr % RPMA_ATOMIC_WRITE_ALIGNMENT != 0) [[unlikely]]
        return atomic_write_slow(conn, dst, dst_offset, src, flags, op_context);
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    if (conn->flush.has_native_write()) [[unlikely]]
        return write_native(conn, dst, dst_offset, src, flags, op_context);
#endif
    return write_inline(__func__, *conn, *dst, dst_offset, src, flags, op_context);
}

RPMA_POST int rpma_write_atomic(struct rpma_conn *conn, struct rpma_mr_remote *dst,
                                size_t dst_offset, const struct rpma_mr_local *src,
                                size_t src_offset, int flags, const void *op_context) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE(src == NULL);
    RPMA_REFUSE_FLAGS(__func__, flags);
    RPMA_REFUSE_VALUE(__func__, dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0, dst_offset,
                      "multiples of 8");
    return write_fenced(__func__, *conn, *dst, dst_offset,
                        make_sge(*src, src_offset, RPMA_ATOMIC_WRITE_ALIGNMENT),
                        signaled_flag(flags), op_context);
}

namespace {

// Emulates a flush: reads to dst, after the writes. The data read is discarded.
[[gnu::always_inline]] inline int flush_by_read(const char *function, const rpma_conn &conn,
                                                const ibv_sge &dst, const rpma_mr_remote &src,
                                                size_t src_offset, int flags,
                                                const void *op_context) {
    Request request;
    set_wr(request.wr, IBV_WR_RDMA_READ, 1, signaled_flag(flags), 0, op_context);
    set_remote(request.wr, src, src_offset);
    return post_request(function, conn, request, dst);
}

#ifdef RPMA_NATIVE_FLUSH
[[gnu::noinline]] RPMA_POST int flush_native(rpma_conn *conn, rpma_mr_remote *dst,
                                             size_t dst_offset, size_t len,
                                             rpma_flush_type type, int flags,
                                             const void *op_context) {
    const uint64_t remote_addr = dst->addr + dst_offset;
    return post_native("rpma_flush", *conn, IBV_WR_FLUSH, remote_addr, len,
                       signaled_flag(flags), op_context, [&](ibv_qp_ex *qpx) {
                           ibv_wr_flush(qpx, dst->rkey, remote_addr, len,
                                        native_flush_type(type), IBV_FLUSH_RANGE);
                       });
}
#endif

// Slow path: every flush except a native one and an emulated one that reads 8 bytes.
[[gnu::noinline]] int flush_slow(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset,
                                 size_t len, rpma_flush_type type, int flags,
                                 const void *op_context) {
    static constexpr char function[] = "rpma_flush";
    RPMA_REFUSE_IN(function, conn == NULL);
    RPMA_REFUSE_IN(function, dst == NULL);
    RPMA_REFUSE_FLAGS(function, flags);
    RPMA_REFUSE_VALUE(function,
                      type != RPMA_FLUSH_TYPE_PERSISTENT && type != RPMA_FLUSH_TYPE_VISIBILITY,
                      type, "RPMA_FLUSH_TYPE_*");
    RPMA_REFUSE_LENGTH(function, len);
    const FlushMethod method = conn->flush.choose(function, dst->flush, type);
#ifdef RPMA_NATIVE_FLUSH
    if (method == FlushMethod::NATIVE)
        return flush_native(conn, dst, dst_offset, len, type, flags, op_context);
#endif
    if (method == FlushMethod::NONE)
        return refuse_flush({function}, *conn, dst->flush, type);
    RPMA_REFUSE_AS(function, dst_offset >= dst->size, RPMA_BEYOND_REGION("dst_offset"),
                   dst_offset, dst->size);
    const uint64_t rest = dst->size - dst_offset;
    ibv_sge bytes = conn->flush_read;
    if (rest < FLUSH_READ_SIZE)
        bytes.length = static_cast<uint32_t>(rest);
    return flush_by_read(function, *conn, bytes, *dst, dst_offset, flags, op_context);
}

} // namespace

RPMA_POST int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                         size_t len, enum rpma_flush_type type, int flags,
                         const void *op_context) {
    if (conn == nullptr || dst == nullptr ||
        static_cast<unsigned>(type) > RPMA_FLUSH_TYPE_VISIBILITY || flags == 0 ||
        len >> 32 != 0) [[unlikely]]
        return flush_slow(conn, dst, dst_offset, len, type, flags, op_context);
    const FlushMethod method = choose_method(conn->flush.masks() & dst->flush, type);
#ifdef RPMA_NATIVE_FLUSH
    if (method == FlushMethod::NATIVE)
        return flush_native(conn, dst, dst_offset, len, type, flags, op_context);
#endif
    if (method != FlushMethod::READ || dst_offset >= dst->full_read_limit) [[unlikely]]
        return flush_slow(conn, dst, dst_offset, len, type, flags, op_context);
    return flush_by_read(__func__, *conn, conn->flush_read, *dst, dst_offset, flags,
                         op_context);
}
