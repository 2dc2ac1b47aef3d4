// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.cc -- exports: batches, except for the post

#include <cstring>

#include "api/list.hh"

using namespace rpma;

namespace {

[[gnu::cold, gnu::noinline]] int refuse_full(const char *function, const rpma_batch &batch) {
    Call call(function);
    RPMA_FAIL(call, RPMA_E_INVAL, 0,
              "the batch is full: it has room for %" PRIu32 " operations", batch.size());
    return call.finish();
}

} // namespace

#define REFUSE_IF_FULL(batch)                       \
    do {                                            \
        if (batch->is_full()) [[unlikely]]          \
            return refuse_full(__func__, *(batch)); \
    } while (false)

int rpma_batch_new(struct rpma_conn *conn, uint32_t max_ops, struct rpma_batch **batch_ptr) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(max_ops == 0);
    RPMA_REFUSE(batch_ptr == NULL);
    Call call(__func__);
    return call.deliver(rpma_batch::create(call, *conn, max_ops), batch_ptr);
}

int rpma_batch_delete(struct rpma_batch **batch_ptr) {
    RPMA_REFUSE(batch_ptr == NULL);
    return discard(batch_ptr);
}

int rpma_batch_read(struct rpma_batch *batch, struct rpma_mr_local *dst, size_t dst_offset,
                    const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
                    const void *op_context) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(flags == 0);
    REFUSE_IF_FULL(batch);
    return transfer(__func__, Addition(batch), IBV_WR_RDMA_READ, dst, dst_offset, src,
                    src_offset, len, flags, 0, op_context);
}

int rpma_batch_readv(struct rpma_batch *batch, const struct rpma_sge *sgl, int nsge,
                     const struct rpma_mr_remote *src, size_t src_offset, int flags,
                     const void *op_context) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(flags == 0);
    REFUSE_IF_FULL(batch);
    return transfer_list(__func__, Addition(batch), IBV_WR_RDMA_READ, sgl, nsge,
                         batch->conn.max_read_sge(), src, src_offset, flags, 0, op_context);
}

int rpma_batch_write(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
                     const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
                     const void *op_context) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(flags == 0);
    REFUSE_IF_FULL(batch);
    return transfer(__func__, Addition(batch), IBV_WR_RDMA_WRITE, src, src_offset, dst,
                    dst_offset, len, flags, 0, op_context);
}

int rpma_batch_writev(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
                      const struct rpma_sge *sgl, int nsge, int flags, const void *op_context) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(flags == 0);
    REFUSE_IF_FULL(batch);
    return transfer_list(__func__, Addition(batch), IBV_WR_RDMA_WRITE, sgl, nsge,
                         batch->conn.max_sge(), dst, dst_offset, flags, 0, op_context);
}

int rpma_batch_write_with_imm(struct rpma_batch *batch, struct rpma_mr_remote *dst,
                              size_t dst_offset, const struct rpma_mr_local *src,
                              size_t src_offset, size_t len, int flags, uint32_t imm,
                              const void *op_context) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(flags == 0);
    REFUSE_IF_FULL(batch);
    return transfer(__func__, Addition(batch), IBV_WR_RDMA_WRITE_WITH_IMM, src, src_offset, dst,
                    dst_offset, len, flags, imm, op_context);
}

int rpma_batch_writev_with_imm(struct rpma_batch *batch, struct rpma_mr_remote *dst,
                               size_t dst_offset, const struct rpma_sge *sgl, int nsge,
                               int flags, uint32_t imm, const void *op_context) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(flags == 0);
    REFUSE_IF_FULL(batch);
    return transfer_list(__func__, Addition(batch), IBV_WR_RDMA_WRITE_WITH_IMM, sgl, nsge,
                         batch->conn.max_sge(), dst, dst_offset, flags, imm, op_context);
}

int rpma_batch_atomic_write(struct rpma_batch *batch, struct rpma_mr_remote *dst,
                            size_t dst_offset, const char src[8], int flags,
                            const void *op_context) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE(src == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0);
    REFUSE_IF_FULL(batch);
    Slot &slot = *batch->free;
    std::memcpy(slot.value, src, sizeof(slot.value));
    const bool is_aligned = dst->addr % RPMA_ATOMIC_WRITE_ALIGNMENT == 0;
    if (!is_aligned) [[unlikely]]
        warn_of_misalignment(__func__, batch->conn);
    const int ret =
        write_inline(__func__, Addition(batch), dst, dst_offset, slot.value, flags, op_context);
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    if (is_aligned && batch->conn.writes_natively.load(std::memory_order_relaxed) != 0) {
        slot.wr.opcode = IBV_WR_ATOMIC_WRITE;
        slot.wr.send_flags &= ~static_cast<unsigned>(IBV_SEND_INLINE);
        batch->is_native = true;
    }
#endif
    return ret;
}

namespace {

// A flush whose way is not open: the first one of its connection, or one that is not allowed.
[[gnu::cold, gnu::noinline]] int add_first_flush(rpma_batch *batch, rpma_mr_remote *dst,
                                                 size_t dst_offset, size_t len,
                                                 rpma_flush_type type, int flags,
                                                 const void *op_context) {
    if (!is_allowed(batch->conn.allowed_flushes() & dst->flush_usage, type))
        return refuse_flush("rpma_batch_flush", batch->conn, dst, type);
    batch->conn.begin_flushes();
    return rpma_batch_flush(batch, dst, dst_offset, len, type, flags, op_context);
}

} // namespace

int rpma_batch_flush(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
                     size_t len, enum rpma_flush_type type, int flags, const void *op_context) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(dst == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(type != RPMA_FLUSH_TYPE_PERSISTENT && type != RPMA_FLUSH_TYPE_VISIBILITY);
    RPMA_REFUSE(len > UINT32_MAX);
    const uint32_t flushes =
        batch->conn.flushes.load(std::memory_order_relaxed) & dst->flush_usage;
    if (!is_allowed(flushes, type)) [[unlikely]] {
#ifdef RPMA_NATIVE_FLUSH
        if (is_allowed(flushes >> FLUSH_NATIVELY, type)) [[likely]] {
            REFUSE_IF_FULL(batch);
            Slot &slot = *batch->free;
            describe(slot.wr, IBV_WR_FLUSH, 0, signaled(flags), 0, op_context);
            address(slot.wr, *dst, dst_offset);
            slot.flush_length = static_cast<uint32_t>(len);
            slot.flush_types = native_flush_types(type);
            batch->is_native = true;
            batch->add_slot();
            return 0;
        }
        return add_first_flush(batch, dst, dst_offset, len, type, flags, op_context);
#else // which needs no length
        return add_first_flush(batch, dst, dst_offset, 0, type, flags, op_context);
#endif
    }
    REFUSE_IF_FULL(batch);
    RPMA_REFUSE(dst_offset >= dst->size);
    return flush_by_read(__func__, Addition(batch), dst, dst_offset, flags, op_context);
}

int rpma_batch_send(struct rpma_batch *batch, const struct rpma_mr_local *src, size_t offset,
                    size_t len, int flags, const void *op_context) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(src == NULL && (offset != 0 || len != 0));
    RPMA_REFUSE(len > UINT32_MAX);
    REFUSE_IF_FULL(batch);
    return message(__func__, Addition(batch), IBV_WR_SEND, src, offset, len, flags, 0,
                   op_context);
}

int rpma_batch_sendv(struct rpma_batch *batch, const struct rpma_sge *sgl, int nsge, int flags,
                     const void *op_context) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(flags == 0);
    REFUSE_IF_FULL(batch);
    return message_list(__func__, Addition(batch), IBV_WR_SEND, sgl, nsge, flags, 0,
                        op_context);
}

int rpma_batch_send_with_imm(struct rpma_batch *batch, const struct rpma_mr_local *src,
                             size_t offset, size_t len, int flags, uint32_t imm,
                             const void *op_context) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(flags == 0);
    RPMA_REFUSE(src == NULL && (offset != 0 || len != 0));
    RPMA_REFUSE(len > UINT32_MAX);
    REFUSE_IF_FULL(batch);
    return message(__func__, Addition(batch), IBV_WR_SEND_WITH_IMM, src, offset, len, flags,
                   imm, op_context);
}

int rpma_batch_sendv_with_imm(struct rpma_batch *batch, const struct rpma_sge *sgl, int nsge,
                              int flags, uint32_t imm, const void *op_context) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(flags == 0);
    REFUSE_IF_FULL(batch);
    return message_list(__func__, Addition(batch), IBV_WR_SEND_WITH_IMM, sgl, nsge, flags, imm,
                        op_context);
}

int rpma_batch_reset(struct rpma_batch *batch) {
    RPMA_REFUSE(batch == NULL);
    batch->reset();
    return 0;
}
