// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// builders.cc -- ibv_wr_start() to ibv_wr_complete(): requests of an extended queue pair.

#include "encode.hh"

#include <algorithm>

using namespace sim;

namespace {

ShimQp *shim_of_ex(ibv_qp_ex *ex) {
    return reinterpret_cast<ShimQp *>(ex);
}

// The lock is held until ibv_wr_complete() or ibv_wr_abort() releases it.
void wr_start(ibv_qp_ex *ex) {
    ShimQp *const qp = shim_of_ex(ex);
    pthread_mutex_lock(&qp->lock);
    qp->builder->encoder.used = 0;
    qp->builder->encoder.count = 0;
    qp->builder->error = 0;
}

void wr_abort(ibv_qp_ex *ex) {
    pthread_mutex_unlock(&shim_of_ex(ex)->lock);
}

// rdma-core 56, providers/rxe/rxe.c, wr_complete(): after an error, no request is posted.
int wr_complete(ibv_qp_ex *ex) {
    ShimQp *const qp = shim_of_ex(ex);
    Builder &builder = *qp->builder;
    int error = builder.error;
    if (!error && builder.encoder.count > 0)
        error = send_built(&ex->qp_base, builder.encoder);
    pthread_mutex_unlock(&qp->lock);
    return error;
}

void build(ibv_qp_ex *ex, SendWr head) {
    Builder &builder = *shim_of_ex(ex)->builder;
    head.wr_id = ex->wr_id;
    head.flags = ex->wr_flags;
    builder.at = builder.encoder.used;
    if (!append(builder.encoder, &head, sizeof(head)))
        builder.error = ENOMEM;
    else
        builder.encoder.count++;
}

// Appends memory to the last request, whose head changes.
template <class Change> void extend(ibv_qp_ex *ex, const Change &change) {
    Builder &builder = *shim_of_ex(ex)->builder;
    if (builder.error)
        return;
    if (builder.encoder.count == 0) {
        builder.error = EINVAL;
        return;
    }
    SendWr head;
    memcpy(&head, builder.encoder.bytes + builder.at, sizeof(head));
    if (!change(builder.encoder, head))
        builder.error = ENOMEM;
    memcpy(builder.encoder.bytes + builder.at, &head, sizeof(head));
}

SendWr remote(uint32_t opcode, uint32_t rkey, uint64_t address) {
    SendWr head = {};
    head.opcode = opcode;
    head.rkey = rkey;
    head.remote_addr = address;
    return head;
}

void wr_rdma_read(ibv_qp_ex *ex, uint32_t rkey, uint64_t address) {
    build(ex, remote(IBV_WR_RDMA_READ, rkey, address));
}
void wr_rdma_write(ibv_qp_ex *ex, uint32_t rkey, uint64_t address) {
    build(ex, remote(IBV_WR_RDMA_WRITE, rkey, address));
}
void wr_rdma_write_imm(ibv_qp_ex *ex, uint32_t rkey, uint64_t address, __be32 imm) {
    SendWr head = remote(IBV_WR_RDMA_WRITE_WITH_IMM, rkey, address);
    head.imm_data = imm;
    build(ex, head);
}
void wr_send(ibv_qp_ex *ex) {
    build(ex, remote(IBV_WR_SEND, 0, 0));
}
void wr_send_imm(ibv_qp_ex *ex, __be32 imm) {
    SendWr head = remote(IBV_WR_SEND_WITH_IMM, 0, 0);
    head.imm_data = imm;
    build(ex, head);
}
void wr_send_inv(ibv_qp_ex *ex, uint32_t rkey) {
    SendWr head = remote(IBV_WR_SEND_WITH_INV, 0, 0);
    head.imm_data = rkey;
    build(ex, head);
}
void wr_local_inv(ibv_qp_ex *ex, uint32_t rkey) {
    SendWr head = remote(IBV_WR_LOCAL_INV, 0, 0);
    head.imm_data = rkey;
    build(ex, head);
}
void wr_bind_mw(ibv_qp_ex *ex, ibv_mw *mw, uint32_t rkey, const ibv_mw_bind_info *info) {
    SendWr head = remote(IBV_WR_BIND_MW, 0, 0);
    set_window(head, *mw, rkey, *info);
    build(ex, head);
}
void wr_atomic_cmp_swp(ibv_qp_ex *ex, uint32_t rkey, uint64_t address, uint64_t compare,
                       uint64_t swap) {
    SendWr head = remote(IBV_WR_ATOMIC_CMP_AND_SWP, rkey, address);
    head.compare_add = compare;
    head.swap = swap;
    build(ex, head);
}
void wr_atomic_fetch_add(ibv_qp_ex *ex, uint32_t rkey, uint64_t address, uint64_t add) {
    SendWr head = remote(IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, address);
    head.compare_add = add;
    build(ex, head);
}
void wr_atomic_write(ibv_qp_ex *ex, uint32_t rkey, uint64_t address, const void *word) {
    SendWr head = remote(SIM_WR_ATOMIC_WRITE, rkey, address);
    memcpy(&head.compare_add, word, sizeof(head.compare_add));
    build(ex, head);
}
void wr_flush(ibv_qp_ex *ex, uint32_t rkey, uint64_t address, size_t length, uint8_t type,
              uint8_t level) {
    SendWr head = remote(SIM_WR_FLUSH, rkey, address);
    head.flush_length = length;
    head.flush_type = type;
    head.flush_level = level;
    build(ex, head);
}
void wr_set_ud_addr(ibv_qp_ex *ex, ibv_ah *ah, uint32_t number, uint32_t key) {
    extend(ex, [=](Encoder &, SendWr &head) {
        head.ah = ah->handle;
        head.remote_qpn = number;
        head.remote_qkey = key;
        return true;
    });
}

void wr_set_xrc_srqn(ibv_qp_ex *ex, uint32_t number) {
    extend(ex, [=](Encoder &, SendWr &head) {
        head.remote_srqn = number;
        return true;
    });
}

// Linux, drivers/infiniband/sw/rxe/rxe_req.c, finish_packet(): rxe finds inline data by the
// send flags, whichever call has written the data or the SGEs, which have the same place.
bool is_inline_by_flag(ibv_qp_ex *ex) {
    return shim_of(ex->qp_base.context->device)->info.inline_by_flag;
}

bool append_sges(Encoder &encoder, SendWr &head, size_t number, const ibv_sge *sges) {
    head.num_sge = static_cast<uint32_t>(number);
    return append(encoder, sges, number * sizeof(*sges));
}

// The SGEs themselves, and zeros.
bool append_sges_as_data(Encoder &encoder, SendWr &head, size_t number, const ibv_sge *sges) {
    static const std::byte zeros[MAX_INLINE] = {};
    size_t length = 0;
    for (size_t i = 0; i < number; i++)
        length += sges[i].length;
    const size_t first = std::min(length, number * sizeof(*sges));
    head.inline_length = static_cast<uint32_t>(length);
    return length <= MAX_INLINE && append(encoder, sges, first) &&
           append(encoder, zeros, length - first) && append_padding(encoder);
}

void wr_set_sge_list(ibv_qp_ex *ex, size_t number, const ibv_sge *sges) {
    extend(ex, [=](Encoder &encoder, SendWr &head) {
        const bool is_data = head.flags & IBV_SEND_INLINE && is_inline_by_flag(ex);
        return (is_data ? append_sges_as_data : append_sges)(encoder, head, number, sges);
    });
}
void wr_set_sge(ibv_qp_ex *ex, uint32_t lkey, uint64_t address, uint32_t length) {
    const ibv_sge sge = {address, length, lkey};
    wr_set_sge_list(ex, 1, &sge);
}

// Without the flag, rxe takes the data for SGEs, after the check of its length: they have no
// valid key.
void wr_set_inline_data_list(ibv_qp_ex *ex, size_t number, const ibv_data_buf *buffers) {
    extend(ex, [=](Encoder &encoder, SendWr &head) {
        const bool is_data = head.flags & IBV_SEND_INLINE || !is_inline_by_flag(ex);
        size_t length = 0;
        bool fits = true;
        for (size_t i = 0; i < number && fits; i++) {
            fits = !is_data || append(encoder, buffers[i].addr, buffers[i].length);
            length += buffers[i].length;
        }
        head.flags |= IBV_SEND_INLINE;
        if (!is_data) {
            const ibv_sge none = {0, static_cast<uint32_t>(length), 0};
            return append_sges(encoder, head, 1, &none);
        }
        head.inline_length = static_cast<uint32_t>(length);
        return fits && append_padding(encoder);
    });
}
void wr_set_inline_data(ibv_qp_ex *ex, void *bytes, size_t length) {
    const ibv_data_buf buffer = {bytes, length};
    wr_set_inline_data_list(ex, 1, &buffer);
}

} // namespace

// rdma-core 56, providers/rxe/rxe.c, set_qp_send_ops(): a builder that was not requested
// is NULL.
int sim::set_builders(ShimQp *qp) {
    qp->builder = static_cast<Builder *>(malloc(sizeof(Builder))); // wr_start() begins it
    if (!qp->builder)
        return ENOMEM;
    const auto if_requested = [qp](uint64_t flag, auto *function) {
        return qp->send_ops & flag ? function : nullptr;
    };
    ibv_qp_ex &ex = qp->ex;
    ex.wr_start = wr_start;
    ex.wr_complete = wr_complete;
    ex.wr_abort = wr_abort;
    ex.wr_set_sge = wr_set_sge;
    ex.wr_set_sge_list = wr_set_sge_list;
    ex.wr_set_inline_data = wr_set_inline_data;
    ex.wr_set_inline_data_list = wr_set_inline_data_list;
    ex.wr_set_ud_addr = wr_set_ud_addr;
    ex.wr_set_xrc_srqn = wr_set_xrc_srqn;
    ex.wr_rdma_read = if_requested(IBV_QP_EX_WITH_RDMA_READ, wr_rdma_read);
    ex.wr_rdma_write = if_requested(IBV_QP_EX_WITH_RDMA_WRITE, wr_rdma_write);
    ex.wr_rdma_write_imm = if_requested(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, wr_rdma_write_imm);
    ex.wr_send = if_requested(IBV_QP_EX_WITH_SEND, wr_send);
    ex.wr_send_imm = if_requested(IBV_QP_EX_WITH_SEND_WITH_IMM, wr_send_imm);
    ex.wr_send_inv = if_requested(IBV_QP_EX_WITH_SEND_WITH_INV, wr_send_inv);
    ex.wr_local_inv = if_requested(IBV_QP_EX_WITH_LOCAL_INV, wr_local_inv);
    ex.wr_bind_mw = if_requested(IBV_QP_EX_WITH_BIND_MW, wr_bind_mw);
    ex.wr_atomic_cmp_swp = if_requested(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp);
    ex.wr_atomic_fetch_add =
        if_requested(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add);
    ex.wr_atomic_write = if_requested(SIM_QP_EX_WITH_ATOMIC_WRITE, wr_atomic_write);
#ifdef RDMA_SIM_HEADERS_HAVE_FLUSH
    ex.wr_flush = if_requested(SIM_QP_EX_WITH_FLUSH, wr_flush);
#else
    qp->wr_flush = if_requested(SIM_QP_EX_WITH_FLUSH, wr_flush);
#endif
    return 0;
}
