// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush.cc -- export: rpma_flush()

#include "post/entry.hh"

using namespace rpma;

int rpma::refuse_flush(const CallSite &site, const rpma_conn &conn, FlushMasks region,
                       rpma_flush_type type) {
    if (site.is_later)
        return RPMA_E_NOSUPP;
    const bool is_persistent = type == RPMA_FLUSH_TYPE_PERSISTENT;
    const bool has_region = region.has_read(type);
    const FlushMasks allowed = conn.flush.allowed();
    const bool has_conn = allowed.has_read(type) || allowed.has_native(type);
    Call call(site.function);
    if (!has_conn)
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "%sthe other side did not say that it has direct write to PMem: apply its "
                  "peer configuration with rpma_conn_apply_remote_peer_cfg() first",
                  site.prefix().chars);
    else if (!has_region)
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0, "%sthe remote region was not registered with %s",
                  site.prefix().chars,
                  is_persistent ? "RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT"
                                : "RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY");
    else
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "%sthe other side does not serve %s flushes of this region natively, and the "
                  "connection has no other flush method: use RPMA_FLUSH_MODE_AUTO",
                  site.prefix().chars, is_persistent ? "persistent" : "visibility");
    return call.finish();
}

int rpma::refuse_atomic(const CallSite &site, const rpma_conn &conn) {
    if (site.is_later)
        return RPMA_E_NOSUPP;
    Call call(site.function);
    if (!conn.device->atomics)
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "%s%s has no remote atomics (IBV_ATOMIC_NONE): have the other side do it",
                  site.prefix().chars, ibv_get_device_name(conn.qp->context->device));
    else
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "%sthe other side does not state RPMA_MR_USAGE_ATOMIC of the remote region: "
                  "register it there with that, and hand it over with "
                  "rpma_conn_private_data_pack(), not as a descriptor",
                  site.prefix().chars);
    return call.finish();
}

namespace {

// By a read after the writes, to dst. The data read is discarded.
[[gnu::always_inline]] inline int flush_by_read(const char *function, const rpma_conn &conn,
                                                const ibv_sge &dst, const rpma_mr_remote &src,
                                                size_t src_offset, int flags,
                                                const void *op_context) {
    Request request;
    describe(request.wr, IBV_WR_RDMA_READ, 1, signaled(flags), 0, op_context);
    address(request.wr, src, src_offset);
    return send(function, conn, request, dst);
}

#ifdef RPMA_NATIVE_FLUSH
[[gnu::noinline]] RPMA_POST int flush_natively(rpma_conn *conn, rpma_mr_remote *dst,
                                               size_t dst_offset, size_t len,
                                               rpma_flush_type type, int flags,
                                               const void *op_context) {
    const uint64_t remote_addr = dst->addr + dst_offset;
    return send_natively("rpma_flush", *conn, IBV_WR_FLUSH, remote_addr, len, signaled(flags),
                         op_context, [&](ibv_qp_ex *qpx) {
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
        return flush_natively(conn, dst, dst_offset, len, type, flags, op_context);
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
        return flush_natively(conn, dst, dst_offset, len, type, flags, op_context);
#endif
    if (method != FlushMethod::READ || dst_offset >= dst->whole_reads) [[unlikely]]
        return flush_slow(conn, dst, dst_offset, len, type, flags, op_context);
    return flush_by_read(__func__, *conn, conn->flush_read, *dst, dst_offset, flags,
                         op_context);
}
