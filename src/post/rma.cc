// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rma.cc -- exports: reads, writes, atomic writes and flushes, one at a time
//
// The fast path of an operation is one condition and one work request. The slow path is out of
// line: it builds a struct rpma_work, and checks and posts that like rpma_post(), with the
// names of its own parameters in the log. tuned.hh says why the fast paths do not use
// encode_*().

#include "post/list.hh"

using namespace rpma;

namespace {

// The slow path of an operation with a region on each side, or with none.
int transfer_slow(const CallSite &site, rpma_work_type type, rpma_conn *conn,
                  const rpma_mr_remote *remote, size_t remote_offset, const rpma_sge &local,
                  int flags, uint32_t imm, const void *op_context) {
    RPMA_REFUSE_AS(site, remote == nullptr && local.mr != nullptr, "%s == NULL && %s != NULL",
                   site.names().remote, site.names().local);
    RPMA_REFUSE_AS(site, remote != nullptr && local.mr == nullptr, "%s == NULL && %s != NULL",
                   site.names().local, site.names().remote);
    RPMA_REFUSE_AS(
        site, remote == nullptr && (remote_offset | local.offset | local.len) != 0,
        "%s and %s are NULL, offsets %zu and %zu, len %zu; possible without memory: 0, 0 and 0",
        site.names().remote, site.names().local, remote_offset, local.offset, local.len);
    RPMA_REFUSE_AS(site, local.len > UINT32_MAX, RPMA_TOO_LONG, "len", local.len);
    rpma_work work = make_work(type, remote, remote_offset, op_context);
    work.local = local;
    work.imm = imm;
    return post_slow(site, conn, work, flags);
}

// The slow paths have the parameters of the exported functions, so that the tail call moves no
// register.
[[gnu::cold, gnu::noinline]] int read_slow(rpma_conn *conn, rpma_mr_local *dst,
                                           size_t dst_offset, const rpma_mr_remote *src,
                                           size_t src_offset, size_t len, int flags,
                                           const void *op_context) {
    return transfer_slow({.function = "rpma_read", .parameters = Parameters::FROM_SRC},
                         RPMA_WORK_READ, conn, src, src_offset, {dst, dst_offset, len}, flags,
                         0, op_context);
}

[[gnu::cold, gnu::noinline]] int write_slow(rpma_conn *conn, rpma_mr_remote *dst,
                                            size_t dst_offset, const rpma_mr_local *src,
                                            size_t src_offset, size_t len, int flags,
                                            const void *op_context) {
    return transfer_slow({.function = "rpma_write", .parameters = Parameters::TO_DST},
                         RPMA_WORK_WRITE, conn, dst, dst_offset, {src, src_offset, len}, flags,
                         0, op_context);
}

[[gnu::cold, gnu::noinline]] int write_with_imm_slow(rpma_conn *conn, rpma_mr_remote *dst,
                                                     size_t dst_offset,
                                                     const rpma_mr_local *src,
                                                     size_t src_offset, size_t len, int flags,
                                                     uint32_t imm, const void *op_context) {
    return transfer_slow({.function = "rpma_write_with_imm", .parameters = Parameters::TO_DST},
                         RPMA_WORK_WRITE_WITH_IMM, conn, dst, dst_offset,
                         {src, src_offset, len}, flags, imm, op_context);
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
        return write_with_imm_slow(conn, dst, dst_offset, src, src_offset, len, flags, imm,
                                   op_context);
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
    const CallSite site = {.function = "rpma_atomic_write", .parameters = Parameters::TO_DST};
    RPMA_REFUSE_IN(site, src == NULL);
    rpma_work work = make_work(RPMA_WORK_ATOMIC_WRITE, dst, dst_offset, op_context);
    std::memcpy(&work.value, src, sizeof(work.value));
    return post_slow(site, conn, work, flags);
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
    RPMA_REFUSE_AS(__func__, flags == 0, RPMA_NO_FLAGS);
    RPMA_REFUSE_AS(__func__, dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0, RPMA_MISALIGNED,
                   "dst_offset", dst_offset);
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
    const CallSite site = {.function = "rpma_flush", .parameters = Parameters::TO_DST};
    rpma_work work = make_work(RPMA_WORK_FLUSH, dst, dst_offset, op_context);
    work.flush_type = type;
    work.flush_len = len;
    return post_slow(site, conn, work, flags);
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
