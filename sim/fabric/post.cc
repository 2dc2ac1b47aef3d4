// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// post.cc -- requests that are posted: what is refused before execution.

#include "engine.hh"
#include "verbs.hh"

#include <cerrno>

namespace sim {

template <class T> bool Verbs::get(size_t &offset, T &value) const {
    if (length_ - offset < sizeof(value))
        return false;
    memcpy(&value, request_ + offset, sizeof(value));
    offset += sizeof(value);
    return true;
}

template <class T>
bool Verbs::get_all(size_t &offset, size_t count, std::vector<T> &values) const {
    if ((length_ - offset) / sizeof(T) < count)
        return false;
    values.resize(count);
    if (count > 0)
        memcpy(values.data(), request_ + offset, count * sizeof(T));
    offset += count * sizeof(T);
    return true;
}
template bool Verbs::get_all(size_t &, size_t, std::vector<ibv_sge> &) const;

// The fault that refuses the nth request of a host.
int Verbs::refuse_by_fault() {
    const auto found = fabric_.refusals_.find(caller_.session->host->number);
    if (found == fabric_.refusals_.end() || --found->second.nth > 0)
        return 0;
    const int error = found->second.error;
    fabric_.refusals_.erase(found);
    return error;
}

static bool has_opcode(const DeviceProfile &profile, uint32_t opcode) {
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_SEND:
    case IBV_WR_RDMA_READ:
        return true;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return profile.has_write_imm;
    case IBV_WR_SEND_WITH_IMM:
        return profile.has_send_imm;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return profile.has_atomics;
    case WR_FLUSH:
        return profile.has_native_flush;
    case WR_ATOMIC_WRITE:
        return profile.has_native_atomic_write;
    default:
        return false;
    }
}

// rdma-core 56, providers/rxe/rxe.c, validate_send_wr() and post_one_send();
// providers/mlx5/qp.c, _mlx5_post_send(): the errors that differ are in the profile.
int Verbs::check_send(const Qp &qp, const SendWr &wr) const {
    const DeviceProfile &profile = *qp.context->device->profile;
    const bool is_atomic =
        wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const bool is_send = wr.opcode == IBV_WR_SEND || wr.opcode == IBV_WR_SEND_WITH_IMM;
    const bool is_inline = wr.flags & IBV_SEND_INLINE && !is_atomic &&
                           wr.opcode != IBV_WR_RDMA_READ && wr.opcode != WR_FLUSH;
    if (qp.sends.size() >= qp.attr.cap.max_send_wr)
        return profile.full_queue_error;
    if (!has_opcode(profile, wr.opcode) || (qp.type == IBV_QPT_UD && !is_send))
        return profile.invalid_error;
    if (is_inline && wr.opcode != WR_ATOMIC_WRITE &&
        wr.inline_length > qp.attr.cap.max_inline_data)
        return profile.inline_error;
    if (wr.num_sge > qp.attr.cap.max_send_sge ||
        (wr.opcode == IBV_WR_RDMA_READ && wr.num_sge > profile.max_read_sge) ||
        (is_atomic && wr.num_sge != 1))
        return profile.invalid_error;
    return 0;
}

// rdma-core 56, providers/rxe/rxe.c, rxe_post_send(), and Linux 7.3,
// drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_post_send(): a QP that is not connected yet
// accepts no requests; one in the error state flushes them.
int Verbs::post_send(const PostSend &request, PostSend::Reply &reply) {
    Qp *const qp = find<Qp>(request.qp);
    if (!qp)
        return EINVAL;
    size_t offset = sizeof(request);
    for (; reply.taken < request.count && reply.error == 0; reply.taken++) {
        Send send{};
        if (!get(offset, send.wr))
            return EPROTO;
        reply.error = refuse_by_fault();
        if (reply.error == 0)
            reply.error = check_send(*qp, send.wr);
        if (reply.error)
            break;
        if (!get_all(offset, send.wr.num_sge, send.sges) ||
            !get_all(offset, (send.wr.inline_length + 7) / 8 * 8, send.inlined))
            return EPROTO;
        send.sent_at = fabric_.now();
        qp->sends.push_back(std::move(send));
    }
    if (qp->attr.qp_state < IBV_QPS_RTS)
        reply.error = qp->context->device->profile->invalid_error;
    Engine(fabric_).run(*qp);
    return 0;
}

// The queue is that of a QP or a shared one. Linux 7.3, drivers/infiniband/sw/rxe/rxe_verbs.c,
// post_one_recv() and rxe_post_recv().
int Verbs::post_recv(const PostRecv &request, PostSend::Reply &reply) {
    Qp *const qp = find<Qp>(request.queue);
    Srq *const srq = find<Srq>(request.queue);
    if ((!qp && !srq) || (qp && qp->srq))
        return EINVAL;
    std::deque<Receive> &receives = qp ? qp->receives : srq->receives;
    const uint32_t most = qp ? qp->attr.cap.max_recv_wr : srq->attr.max_wr;
    const uint32_t most_sge = qp ? qp->attr.cap.max_recv_sge : srq->attr.max_sge;
    const DeviceProfile &profile = *context_of(qp ? (Object &)*qp : *srq)->device->profile;
    size_t offset = sizeof(request);
    reply.error = qp && qp->attr.qp_state < IBV_QPS_INIT ? profile.invalid_error : 0;
    for (; reply.taken < request.count && reply.error == 0; reply.taken++) {
        RecvWr wr;
        Receive receive;
        if (!get(offset, wr))
            return EPROTO;
        reply.error = refuse_by_fault();
        if (reply.error == 0 && receives.size() >= most)
            reply.error = profile.full_queue_error;
        if (reply.error == 0 &&
            (wr.num_sge > most_sge || (wr.num_sge == 0 && profile.receives_need_sge)))
            reply.error = profile.invalid_error;
        if (reply.error)
            break;
        if (!get_all(offset, wr.num_sge, receive.sges))
            return EPROTO;
        receive.wr_id = wr.wr_id;
        receives.push_back(std::move(receive));
    }
    if (qp && qp->attr.qp_state == IBV_QPS_ERR)
        Engine(fabric_).flush_receives(*qp);
    Engine(fabric_).receive_posted();
    return 0;
}

} // namespace sim
