// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// strict_requests.cc -- the checks of posted requests and their completions with --strict

#include "strict.hh"

#include <cerrno>

namespace {

// The functions of all contexts, which are those of libibverbs.so.1.
ibv_context_ops original;

Object *region_of(uint32_t lkey) {
    Object *const region = alias(key_of_region(lkey));
    return region == nullptr || region->is_dead ? nullptr : region;
}

void check_sge(const ibv_sge &sge, const Object *pd, bool is_written, const Call &call) {
    const Object *const region = region_of(sge.lkey);
    if (sge.length == 0)
        return;
    if (region == nullptr)
        return report(Check::KEY, call, "no region has the lkey %#x", sge.lkey);
    if (pd != nullptr && region->used[0] != nullptr && region->used[0] != pd)
        report(Check::KEY, call, "the region of the lkey %#x has another protection domain",
               sge.lkey);
    if (sge.addr < region->begin || sge.addr - region->begin > region->length ||
        sge.length > region->length - (sge.addr - region->begin))
        report(Check::RANGE, call, "%#llx to %#llx is not in the region, %#llx to %#llx",
               static_cast<unsigned long long>(sge.addr),
               static_cast<unsigned long long>(sge.addr + sge.length),
               static_cast<unsigned long long>(region->begin),
               static_cast<unsigned long long>(region->begin + region->length));
    if (is_written && (region->access & IBV_ACCESS_LOCAL_WRITE) == 0)
        report(Check::ACCESS, call, "the region of the lkey %#x", sge.lkey);
}

Posted posted_of(uint64_t id, bool is_signaled, const ibv_sge *list, int count) {
    Posted posted = {id, is_signaled, 0, {}};
    for (int i = 0; i < count && posted.sges < Posted::MOST; i++)
        if (Object *const region = list[i].length > 0 ? region_of(list[i].lkey) : nullptr) {
            posted.keys[posted.sges++] = list[i].lkey;
            region->pending++;
        }
    return posted;
}

// The oldest request of the queue has completed.
void complete_first(Queue &queue, Object *cq) {
    const Posted &posted = queue.at(0);
    for (unsigned i = 0; i < posted.sges; i++)
        if (Object *const region = alias(key_of_region(posted.keys[i]));
            region != nullptr && region->pending > 0)
            region->pending--;
    if (posted.is_signaled && cq != nullptr && cq->pending > 0)
        cq->pending--;
    queue.remove_first();
}

// The newest request of the queue was not posted.
void withdraw_last(Queue &queue, Object *cq) {
    Queue last = queue;
    last.first = (last.first + last.count - 1) % last.room;
    complete_first(last, cq);
    queue.count--;
}

void check_room(Object *cq, const ibv_cq *pointer, const Call &call) {
    if (cq != nullptr && cq->is_known && pointer->cqe > 0 &&
        cq->pending > static_cast<unsigned>(pointer->cqe))
        report(Check::OVERFLOW, call, "%u completions for a queue of %d", cq->pending,
               pointer->cqe);
}

// iWARP: libibverbs has an old state, because the connection manager changes it.
ibv_qp_state state_of(ibv_qp *qp, ibv_qp_state enough) {
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    if (qp->state >= enough || VERBS(ibv_query_qp)(qp, &attr, IBV_QP_STATE, &init) != 0)
        return qp->state;
    return attr.qp_state;
}

bool is_read_or_atomic(const ibv_send_wr &wr) {
    return wr.opcode == IBV_WR_RDMA_READ || wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

// iWARP: the connection manager sets the depth, which libibverbs does not report.
bool lacks_depth(ibv_qp *qp, const ibv_send_wr *wr) {
    ibv_qp_attr attr;
    ibv_qp_init_attr init;
    while (wr != nullptr && !is_read_or_atomic(*wr))
        wr = wr->next;
    return wr != nullptr && qp->state == IBV_QPS_RTS &&
           qp->context->device->transport_type != IBV_TRANSPORT_IWARP &&
           VERBS(ibv_query_qp)(qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC, &init) == 0 &&
           attr.max_rd_atomic == 0;
}

void check_send(ibv_qp *qp, Object &object, const ibv_send_wr &wr, const Call &call) {
    constexpr unsigned KNOWN = IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED |
                               IBV_SEND_INLINE | IBV_SEND_IP_CSUM;
    const bool is_written = is_read_or_atomic(wr);
    const bool has_sges = wr.opcode != IBV_WR_BIND_MW && wr.opcode != IBV_WR_LOCAL_INV;
    const bool is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0 && !is_written;
    uint64_t length = 0;
    if ((wr.send_flags & ~KNOWN) != 0)
        report(Check::FLAGS, call, "send_flags %#x", wr.send_flags);
    if ((wr.send_flags & IBV_SEND_INLINE) != 0 && is_written)
        report(Check::FLAGS, call, "IBV_SEND_INLINE of a request that reads");
    if (!has_sges)
        return;
    if (wr.num_sge < 0 || static_cast<unsigned>(wr.num_sge) > object.cap.max_send_sge)
        return report(Check::SGES, call, "num_sge is %d, max_send_sge %u", wr.num_sge,
                      object.cap.max_send_sge);
    for (int i = 0; i < wr.num_sge; i++) {
        length += wr.sg_list[i].length;
        if (!is_inline)
            check_sge(wr.sg_list[i], find(qp->pd), is_written, call);
    }
    if (is_inline && length > object.cap.max_inline_data)
        report(Check::INLINE, call, "%llu bytes, max_inline_data is %u",
               static_cast<unsigned long long>(length), object.cap.max_inline_data);
}

int post_send(ibv_qp *qp, ibv_send_wr *wr, ibv_send_wr **bad) {
    const Call call = {"ibv_post_send", __builtin_return_address(0)};
    {
        const Lock lock;
        if (!is_usable(Kind::QP, qp, call))
            return EINVAL;
    }
    const bool is_early = state_of(qp, IBV_QPS_RTS) < IBV_QPS_RTS;
    const bool is_never_sent = lacks_depth(qp, wr);
    {
        const Lock lock;
        Object *const object = find(qp);
        if (is_early)
            report(Check::EARLY, call, "the queue pair is not in the state RTS");
        if (is_never_sent)
            report(Check::DEPTH, call, "max_rd_atomic of the queue pair is 0");
        for (const ibv_send_wr *each = wr; object != nullptr && each != nullptr;
             each = each->next)
            check_send(qp, *object, *each, call);
    }
    // Before the call, because another thread may poll the completion.
    ibv_send_wr *const first = wr;
    size_t count = 0;
    {
        const Lock lock;
        if (Object *const object = find(qp)) {
            Object *const cq = find(qp->send_cq);
            for (const ibv_send_wr *each = wr; each != nullptr; each = each->next, count++) {
                const bool is_signaled =
                    object->signals_all || (each->send_flags & IBV_SEND_SIGNALED) != 0;
                const bool is_copied = (each->send_flags & IBV_SEND_INLINE) != 0;
                object->sends.add(
                    posted_of(each->wr_id, is_signaled, each->sg_list,
                              is_copied || each->num_sge < 0 ? 0 : each->num_sge));
                if (cq != nullptr)
                    cq->pending += is_signaled;
            }
            check_room(cq, qp->send_cq, call);
        }
    }
    const int error = original.post_send(qp, wr, bad);
    const Lock lock;
    Object *const object = error == 0 ? nullptr : find(qp);
    if (object == nullptr)
        return error;
    // The first of the requests that were not posted, and all later ones.
    size_t taken = 0;
    for (const ibv_send_wr *each = first; each != nullptr && each != *bad; each = each->next)
        taken++;
    for (; count > taken && object->sends.count > 0; count--)
        withdraw_last(object->sends, find(qp->send_cq));
    return error;
}

// Of a QP or an SRQ, whose completions have no known queue.
template <class Post>
int post_receives(void *queue, ibv_pd *pd, unsigned max_sge, Object *cq, const ibv_cq *pointer,
                  ibv_recv_wr *wr, ibv_recv_wr **bad, const Call &call, Post post) {
    {
        const Lock lock;
        Object *const object = find(queue);
        for (const ibv_recv_wr *each = wr; object != nullptr && each != nullptr;
             each = each->next) {
            if (each->num_sge < 0 || static_cast<unsigned>(each->num_sge) > max_sge) {
                report(Check::SGES, call, "num_sge is %d, max_recv_sge %u", each->num_sge,
                       max_sge);
                continue;
            }
            for (int i = 0; i < each->num_sge; i++)
                check_sge(each->sg_list[i], find(pd), true, call);
        }
    }
    for (; wr != nullptr; wr = wr->next) {
        // One by one, because a thread may poll their completions at once.
        ibv_recv_wr one = *wr, *refused = nullptr;
        one.next = nullptr;
        {
            const Lock lock;
            if (Object *const object = find(queue)) {
                object->receives.add(posted_of(one.wr_id, true, one.sg_list, one.num_sge));
                if (cq != nullptr)
                    cq->pending++;
                check_room(cq, pointer, call);
            }
        }
        if (const int error = post(&one, &refused)) {
            *bad = wr;
            const Lock lock;
            if (Object *const object = find(queue);
                object != nullptr && object->receives.count > 0)
                withdraw_last(object->receives, cq);
            return error;
        }
    }
    return 0;
}

int post_recv(ibv_qp *qp, ibv_recv_wr *wr, ibv_recv_wr **bad) {
    const Call call = {"ibv_post_recv", __builtin_return_address(0)};
    {
        const Lock lock;
        if (!is_usable(Kind::QP, qp, call))
            return EINVAL;
        if (qp->srq != nullptr) {
            report(Check::SHARED, call, "the queue pair has a shared receive queue");
            return original.post_recv(qp, wr, bad);
        }
        if (qp->state == IBV_QPS_RESET)
            report(Check::EARLY, call, "the queue pair is in the state RESET");
    }
    const Object *const object = find(qp);
    return post_receives(qp, qp->pd, object == nullptr ? UINT32_MAX : object->cap.max_recv_sge,
                         find(qp->recv_cq), qp->recv_cq, wr, bad, call,
                         [qp](ibv_recv_wr *one, ibv_recv_wr **refused) {
                             return original.post_recv(qp, one, refused);
                         });
}

int post_srq_recv(ibv_srq *srq, ibv_recv_wr *wr, ibv_recv_wr **bad) {
    const Call call = {"ibv_post_srq_recv", __builtin_return_address(0)};
    {
        const Lock lock;
        if (!is_usable(Kind::SRQ, srq, call))
            return EINVAL;
    }
    const Object *const object = find(srq);
    return post_receives(
        srq, srq->pd, object == nullptr ? UINT32_MAX : object->cap.max_recv_sge, nullptr,
        nullptr, wr, bad, call, [srq](ibv_recv_wr *one, ibv_recv_wr **refused) {
            return original.post_srq_recv(srq, one, refused);
        });
}

// A send completes all before it; receives of a QP complete in their order, those of an SRQ in
// any.
void complete(Object *cq, const ibv_wc &wc) {
    Object *const qp = alias(key_of_qp(wc.qp_num));
    if (qp == nullptr || qp->is_dead)
        return;
    Queue &sends = qp->sends;
    for (size_t i = 0; i < sends.count; i++)
        if (sends.at(i).wr_id == wc.wr_id &&
            (sends.at(i).is_signaled || wc.status != IBV_WC_SUCCESS)) {
            const bool is_of_receive =
                wc.status == IBV_WC_SUCCESS && (wc.opcode & IBV_WC_RECV) != 0;
            if (is_of_receive)
                break;
            for (size_t left = i + 1; left > 0; left--)
                complete_first(sends, cq);
            return;
        }
    Object *const srq =
        qp->used[3] != nullptr && qp->used[3]->kind == Kind::SRQ ? qp->used[3] : nullptr;
    Queue &receives = srq != nullptr ? srq->receives : qp->receives;
    for (size_t i = 0; i < receives.count; i++)
        if (receives.at(i).wr_id == wc.wr_id) {
            const Posted found = receives.at(i);
            for (; srq != nullptr && i > 0; i--)
                receives.at(i) = receives.at(i - 1);
            if (srq != nullptr)
                receives.at(0) = found;
            for (size_t left = i + 1; left > 0; left--)
                complete_first(receives, srq != nullptr ? nullptr : cq);
            return;
        }
}

int poll_cq(ibv_cq *cq, int count, ibv_wc *wc) {
    const Call call = {"ibv_poll_cq", __builtin_return_address(0)};
    {
        const Lock lock;
        if (!is_usable(Kind::CQ, cq, call))
            return -1;
    }
    const int found = original.poll_cq(cq, count, wc);
    const Lock lock;
    for (int i = 0; i < found; i++)
        complete(find(cq), wc[i]);
    return found;
}

int req_notify_cq(ibv_cq *cq, int solicited_only) {
    const Call call = {"ibv_req_notify_cq", __builtin_return_address(0)};
    {
        const Lock lock;
        if (!is_usable(Kind::CQ, cq, call))
            return EINVAL;
        if (cq->channel == nullptr)
            report(Check::CHANNEL, call, "the completion queue has no channel");
    }
    return original.req_notify_cq(cq, solicited_only);
}

// Returns true if the queue has a request with the key.
bool uses(Queue &queue, uint32_t lkey) {
    for (size_t i = 0; i < queue.count; i++)
        for (unsigned k = 0; k < queue.at(i).sges; k++)
            if (queue.at(i).keys[k] == lkey)
                return true;
    return false;
}

struct Users {
    uint32_t lkey;
    ibv_qp *qps[16];
    unsigned count;
};

void find_user(Object &object, void *argument) {
    auto &users = *static_cast<Users *>(argument);
    if (object.kind == Kind::QP && users.count < sizeof(users.qps) / sizeof(users.qps[0]) &&
        (uses(object.sends, users.lkey) || uses(object.receives, users.lkey)))
        users.qps[users.count++] = reinterpret_cast<ibv_qp *>(object.key);
}

} // namespace

void clear(Queue &queue, Object *cq) {
    while (queue.count > 0)
        complete_first(queue, cq);
}

void check_posted(const ibv_mr *mr, const Call &call) {
    Users users = {mr->lkey, {}, 0};
    {
        const Lock lock;
        const Object *const object = find(mr);
        if (object == nullptr || object->pending == 0)
            return;
        for_each(find_user, &users);
    }
    for (unsigned i = 0; i < users.count; i++) {
        const ibv_qp_state state = state_of(users.qps[i], IBV_QPS_UNKNOWN);
        const Lock lock;
        if (state >= IBV_QPS_INIT && state <= IBV_QPS_SQD)
            report(Check::POSTED, call, "requests of the queue pair %#x use the region",
                   users.qps[i]->qp_num);
    }
}

void watch_requests(ibv_context *context) {
    original = context->ops;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.post_srq_recv = post_srq_recv;
    context->ops.poll_cq = poll_cq;
    context->ops.req_notify_cq = req_notify_cq;
}
