// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush.cc -- export: rpma_flush()

#include "post/flush.hh"
#include "post/send.hh"

using namespace rpma;

int rpma::refuse_flush(const Origin &origin, const rpma_conn &conn, uint32_t region_ways,
                       rpma_flush_type type) {
    if (origin.is_behind)
        return RPMA_E_NOSUPP;
    const bool is_persistent = type == RPMA_FLUSH_TYPE_PERSISTENT;
    // A region that accepts this flush type accepts it by one of these two methods.
    const bool has_region = goes(region_ways, BY_READ, type);
    const bool has_conn =
        goes(conn.flush.allowed(), BY_READ, type) || goes(conn.flush.allowed(), NATIVELY, type);
    Call call(origin.function);
    if (!has_conn)
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "%sthe other side did not say that it has direct write to PMem: apply its "
                  "peer configuration with rpma_conn_apply_remote_peer_cfg() first",
                  origin.prefix().chars);
    else if (!has_region)
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0, "%sthe remote region was not registered with %s",
                  origin.prefix().chars,
                  is_persistent ? "RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT"
                                : "RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY");
    else
        RPMA_FAIL(call, RPMA_E_NOSUPP, 0,
                  "%sthe other side does not serve %s flushes of this region natively, and the "
                  "connection flushes in no other way: use RPMA_FLUSH_MODE_AUTO",
                  origin.prefix().chars, is_persistent ? "persistent" : "visibility");
    return call.finish();
}

namespace {

// By a read after the writes. The data read is discarded.
[[gnu::always_inline]] inline int flush_by_read(const char *function, const rpma_conn &conn,
                                                const rpma_mr_remote &dst, size_t dst_offset,
                                                uint32_t len, int flags,
                                                const void *op_context) {
    Request request;
    request.sge = conn.flush_read;
    request.sge.length = len;
    describe(request.wr, IBV_WR_RDMA_READ, 1, signaled(flags), 0, op_context);
    address(request.wr, dst, dst_offset);
    return send(function, conn, request);
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
[[gnu::noinline]] int flush_otherwise(rpma_conn *conn, rpma_mr_remote *dst, size_t dst_offset,
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
    const uint32_t ways = ways_of(function, *conn, dst->flush_ways, type);
#ifdef RPMA_NATIVE_FLUSH
    if (goes(ways, NATIVELY, type))
        return flush_natively(conn, dst, dst_offset, len, type, flags, op_context);
#endif
    if (!goes(ways, BY_READ, type) && !goes(ways, FALL_BACK, type))
        return refuse_flush({function}, *conn, dst->flush_ways, type);
    RPMA_REFUSE_AS(function, dst_offset >= dst->size, RPMA_BEHIND_REGION("dst_offset"),
                   dst_offset, dst->size);
    const uint64_t rest = dst->size - dst_offset;
    return flush_by_read(function, *conn, *dst, dst_offset,
                         rest < FLUSH_READ_SIZE ? static_cast<uint32_t>(rest) : FLUSH_READ_SIZE,
                         flags, op_context);
}

} // namespace

RPMA_POST int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                         size_t len, enum rpma_flush_type type, int flags,
                         const void *op_context) {
    if (conn == nullptr || dst == nullptr ||
        static_cast<unsigned>(type) > RPMA_FLUSH_TYPE_VISIBILITY || flags == 0 ||
        len >> 32 != 0) [[unlikely]]
        return flush_otherwise(conn, dst, dst_offset, len, type, flags, op_context);
    const uint32_t ways = conn->flush.ways() & dst->flush_ways;
    if (!goes(ways, BY_READ, type)) [[unlikely]] {
#ifdef RPMA_NATIVE_FLUSH
        if (goes(ways, NATIVELY, type)) [[likely]]
            return flush_natively(conn, dst, dst_offset, len, type, flags, op_context);
#endif
        return flush_otherwise(conn, dst, dst_offset, len, type, flags, op_context);
    }
    if (dst_offset >= dst->whole_reads) [[unlikely]]
        return flush_otherwise(conn, dst, dst_offset, len, type, flags, op_context);
    return flush_by_read(__func__, *conn, *dst, dst_offset, FLUSH_READ_SIZE, flags, op_context);
}
