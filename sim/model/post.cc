// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// post.cc -- posted requests: the checks before execution.

#include "comp.hh"
#include "qp_state.hh"
#include "req.hh"
#include "verbs.hh"

#include <algorithm>
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

// Applies the fault of Fabric::refuse_post(), before a request is queued or after the last one.
int Verbs::refuse_by_fault(bool is_queued) {
    const auto found = fabric_.refusals.find(caller_.session->host->number);
    if (found == fabric_.refusals.end() || (found->second.nth == 0) != is_queued ||
        (!is_queued && --found->second.nth > 0))
        return 0;
    const int error = found->second.error;
    fabric_.refusals.erase(found);
    return error;
}

static bool is_connected(const Qp &qp) {
    return qp.attr.qp_state >= IBV_QPS_RTS && !qp.is_idle;
}

// How much of a queue is used: in a queue whose entries a poll frees, and in one without the
// weakness SEND_QUEUE.
struct Used {
    size_t weak, strong;
};

static Used used_sends(const Qp &qp) {
    if (!qp.context->device->profile->frees_entries_in_poll)
        return {qp.sends.size(), qp.sends.size()};
    const uint64_t completed = qp.sends.empty() ? qp.sent.posted : qp.sends.front().posted - 1;
    return {static_cast<size_t>(qp.sent.posted - qp.sent.freed),
            static_cast<size_t>(qp.sent.posted - completed)};
}

// Returns the result of a check that depends on it.
template <class Check> static int check_used(Fabric &fabric, Used used, const Check &check) {
    const int error = check(used.weak);
    if (error == 0 || used.weak == used.strong)
        return error;
    const int strong_error = check(used.strong);
    return error == strong_error || fabric.shows(Weakness::SEND_QUEUE) ? error : strong_error;
}

// Sets send.posted and send.length. `copy`: how much of the queue is used, instead of its own.
int Verbs::check_send(const Qp &qp, Send &send, bool is_built, const size_t *copy) const {
    const sim_profile &profile = *qp.context->device->profile;
    const SendWr &wr = send.wr;
    sim_send checked = {wr.opcode,      wr.flags,      wr.num_sge,    wr.inline_length,
                        wr.remote_addr, wr.flush_type, wr.flush_level};
    for (const ibv_sge &sge : send.sges)
        checked.length += sge.length;
    send.length = checked.length;
    send.posted = qp.sent.posted + sim_send_units(&profile, &checked);
    if (profile.failed_error && qp.attr.qp_state == IBV_QPS_ERR)
        return profile.failed_error;
    if (!is_built && qp.type == IBV_QPT_UD && wr.opcode != IBV_WR_SEND &&
        wr.opcode != IBV_WR_SEND_WITH_IMM)
        return profile.invalid_error;
    const auto check = is_built ? sim_check_built : sim_check_send;
    const Used used = copy ? Used{*copy, *copy} : used_sends(qp);
    return check_used(fabric_, used, [&](size_t queued) {
        return check(&profile, is_connected(qp), &qp.attr.cap, &checked, queued);
    });
}

// Returns how much is used of the copy to which a child of fork() posts; NULL for the queue
// itself. The driver checks a request in the copy, which the device does not read: the queue is
// private memory of the process that created it. rdma-core 56, providers/mlx5/buf.c,
// mlx5_alloc_buf(), and alike in other drivers; that of rxe and siw is shared memory, which the
// kernel reads.
size_t *Verbs::copy_of(const Object &queue, Usage &usage, size_t used,
                       const sim_profile &profile) {
    if (profile.has_doorbell_call || queue.pid == caller_.pid || !fabric_.shows(Weakness::FORK))
        return nullptr;
    return &usage.copies.try_emplace(caller_.pid, used).first->second;
}

// Allows the process that created the QP to post as many units as the send queue has room for
// without a reply.
void Verbs::grant_credit(Qp &qp, size_t room) {
    qp.unanswered += caller_.unanswered;
    if (!qp.credit)
        return;
    if (caller_.pid != qp.pid) { // a child of fork() posts as well
        *qp.credit = {};
        qp.credit = nullptr;
        return;
    }
    __atomic_store_n(&qp.credit->limit, qp.unanswered + static_cast<uint32_t>(room),
                     __ATOMIC_RELAXED);
}

// Linux 6.1, include/rdma/ib.h, ib_safe_file_access(): the kernel refuses a write() to a device
// that another process has opened. rdma-core 56, providers/rxe/rxe.c, post_send_db().
int Verbs::refuse_doorbell(const Qp &qp) {
    const bool is_refused = qp.context->device->profile->has_doorbell_call &&
                            qp.context->pid != caller_.pid && fabric_.shows(Weakness::FORK);
    return is_refused ? EACCES : refuse_by_fault(true);
}

// A QP in the error state flushes the requests.
int Verbs::post_send(const PostSend &request, PostSend::Reply &reply) {
    Qp *const qp = find<Qp>(request.qp);
    if (!qp || !qp->send_cq)
        return EINVAL;
    const sim_profile &profile = *qp->context->device->profile;
    size_t offset = sizeof(request);
    const uint64_t posted = qp->sent.posted;
    const bool has_reply = caller_.unanswered == 0,
               has_failed = qp->attr.qp_state == IBV_QPS_ERR;
    const bool is_idle = qp->sends.empty();
    free_polled(fabric_, *qp->send_cq);
    size_t *const copy = copy_of(*qp, qp->sent, used_sends(*qp).weak, profile);
    const size_t copied = copy ? *copy : 0;
    for (; reply.taken < request.count && reply.error == 0; reply.taken++) {
        Send send{};
        if (!get(offset, send.wr) ||
            (send.wr.num_sge <= MAX_SGES && !get_all(offset, send.wr.num_sge, send.sges)) ||
            (send.wr.inline_length <= MAX_INLINE &&
             !get_all(offset, (send.wr.inline_length + 7) / 8 * 8, send.inlined)))
            return EPROTO;
        reply.error = has_reply ? refuse_by_fault(false) : 0;
        if (reply.error == 0)
            reply.error = check_send(*qp, send, request.is_built, copy);
        if (!has_reply && has_failed) // since the process has posted it
            reply.error = 0;
        if (reply.error)
            break;
        if (send.sges.size() != send.wr.num_sge || send.inlined.size() < send.wr.inline_length)
            return EPROTO; // libibverbs sends so much data only to have it refused
        reply.units =
            std::max(reply.units, static_cast<uint32_t>(send.posted - qp->sent.posted));
        if (copy) {
            *copy += send.posted - posted;
            continue;
        }
        if (send.wr.opcode == IBV_WR_RDMA_READ && profile.reads_first_sge)
            send.sges.resize(
                std::min(send.sges.size(), static_cast<size_t>(profile.attr.max_sge_rd)));
        send.sent_at = fabric_.now() + fabric_.scheduler().delay(Delayed::REQUEST);
        qp->sent.posted = send.posted;
        qp->sends.push_back(std::move(send));
    }
    if (reply.error && request.is_built) { // ibv_wr_complete() then rings no doorbell
        if (copy)
            *copy = copied;
        else
            qp->sends.erase(qp->sends.end() - reply.taken, qp->sends.end());
        qp->sent.posted = posted;
        reply.taken = 0;
        return 0;
    }
    // rdma-core 56, providers/rxe/rxe.c, rxe_post_send() and wr_complete(): return the error of
    // post_send_db(), a system call, after all requests were queued.
    const int doorbell_error =
        reply.error || reply.taken == 0 || !has_reply ? 0 : refuse_doorbell(*qp);
    reply.error =
        sim_post_result(&profile, is_connected(*qp), is_idle, reply.taken, reply.error);
    if (reply.error == 0)
        reply.error = doorbell_error;
    fabric_.scheduler().posted(*qp);
    run_sends(fabric_, *qp);
    if (!has_reply && has_failed)
        complete_sends(fabric_, *qp);
    const Used used = used_sends(*qp);
    const size_t most = std::max(used.weak, used.strong), size = qp->attr.cap.max_send_wr;
    grant_credit(*qp, is_connected(*qp) && qp->attr.qp_state == IBV_QPS_RTS && size > most
                          ? size - most
                          : 0);
    return 0;
}

// The queue belongs to a QP or is an SRQ. Linux 7.3, drivers/infiniband/sw/rxe/rxe_verbs.c,
// post_one_recv() and rxe_post_recv().
int Verbs::post_recv(const PostRecv &request, PostSend::Reply &reply) {
    Qp *const qp = find<Qp>(request.queue);
    Srq *const srq = find<Srq>(request.queue);
    if ((!qp && !srq) || (qp && (qp->srq || !qp->recv_cq)))
        return EINVAL;
    std::deque<Receive> &receives = qp ? qp->receives : srq->receives;
    Usage &usage = qp ? qp->received : srq->received;
    const uint32_t most = qp ? qp->attr.cap.max_recv_wr : srq->attr.max_wr;
    const uint32_t most_sge = qp ? qp->attr.cap.max_recv_sge : srq->attr.max_sge;
    const sim_profile &profile =
        *context_of(qp ? static_cast<Object &>(*qp) : *srq)->device->profile;
    size_t offset = sizeof(request);
    if (qp)
        free_polled(fabric_, *qp->recv_cq);
    else if (usage.posted - usage.freed + request.count > most) // any CQ may free an entry
        for (const auto &[handle, object] : fabric_.objects())
            if (object->kind == Object::CQ)
                free_polled(fabric_, static_cast<Cq &>(*object));
    const auto used_receives = [&]() -> Used {
        return {profile.frees_entries_in_poll ? static_cast<size_t>(usage.posted - usage.freed)
                                              : receives.size(),
                receives.size()};
    };
    size_t *const copy =
        copy_of(qp ? static_cast<Object &>(*qp) : *srq, usage, used_receives().weak, profile);
    if (qp && qp->attr.qp_state < IBV_QPS_INIT && !profile.receives_in_reset)
        reply.error = profile.invalid_error;
    const bool has_failed = qp && qp->attr.qp_state == IBV_QPS_ERR;
    if (has_failed && profile.failed_error)
        reply.error = profile.failed_error;
    for (; reply.taken < request.count && reply.error == 0; reply.taken++) {
        RecvWr wr;
        Receive receive;
        if (!get(offset, wr))
            return EPROTO;
        reply.error = refuse_by_fault(false);
        if (reply.error == 0)
            reply.error = check_used(
                fabric_, copy ? Used{*copy, *copy} : used_receives(), [&](size_t queued) {
                    return sim_check_receive(&profile, most, most_sge, wr.num_sge, queued);
                });
        if (reply.error && srq && profile.srq_error)
            reply.error = profile.srq_error;
        if (reply.error)
            break;
        if (!get_all(offset, wr.num_sge, receive.sges))
            return EPROTO;
        if (copy) {
            ++*copy;
            continue;
        }
        receive.wr_id = wr.wr_id;
        usage.posted++;
        receives.push_back(std::move(receive));
    }
    if (has_failed)
        flush_receives(fabric_, *qp);
    retry_rejected_sends(fabric_);
    return 0;
}

} // namespace sim
