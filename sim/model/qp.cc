// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// qp.cc -- requests about completion queues, shared receive queues and queue pairs.

#include "qp_state.hh"
#include "req.hh"
#include "verbs.hh"

#include <cerrno>

namespace sim {

namespace {

void copy_attributes(ibv_qp_attr &to, const ibv_qp_attr &from, int mask) {
#define COPY(bit, member) \
    if (mask & (bit))     \
    to.member = from.member
    COPY(IBV_QP_STATE, qp_state);
    COPY(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    COPY(IBV_QP_PKEY_INDEX, pkey_index);
    COPY(IBV_QP_PORT, port_num);
    COPY(IBV_QP_QKEY, qkey);
    COPY(IBV_QP_AV, ah_attr);
    COPY(IBV_QP_PATH_MTU, path_mtu);
    COPY(IBV_QP_TIMEOUT, timeout);
    COPY(IBV_QP_RETRY_CNT, retry_cnt);
    COPY(IBV_QP_RNR_RETRY, rnr_retry);
    COPY(IBV_QP_RQ_PSN, rq_psn);
    COPY(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    COPY(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    COPY(IBV_QP_SQ_PSN, sq_psn);
    COPY(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    COPY(IBV_QP_DEST_QPN, dest_qp_num);
    COPY(IBV_QP_PATH_MIG_STATE, path_mig_state);
    COPY(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
#undef COPY
}

} // namespace

// ---- completion queues ---------------------------------------------------------------------

int Verbs::create_cq(const CreateCq &request, CreateCq::Reply &reply) {
    Context *const context = find<Context>(request.context);
    Channel *const channel = request.channel ? find<Channel>(request.channel) : nullptr;
    if (!context || (request.channel && !channel))
        return EINVAL;
    const sim_profile &profile = *context->device->profile;
    if (context->device->removed)
        return EIO;
    int error = request.is_extended ? sim_check_cq_ex(&profile, request.comp_mask,
                                                      request.flags, request.wc_flags)
                                    : 0;
    if (!error)
        error = sim_check_cq(&profile, request.entries, request.vector);
    if (error)
        return error;
    const uint32_t entries = sim_queue_size(&profile, request.entries);
    RingPlace place{};
    Cq *const made = create<Cq>(*context->device, error);
    if (!made)
        return error;
    Ring *const ring = fabric_.environment.open_ring(
        caller_.session->number, Ring::bytes(entries), place, reply_.descriptor);
    if (!ring) {
        fabric_.discard(*made);
        return errno == ENOMEM ? ENOMEM : ENFILE;
    }
    ring->entries = made->entries = entries;
    made->context = context;
    context->objects++;
    made->channel = channel;
    made->ring = ring;
    made->cookie = request.cookie;
    made->ignores_overrun = request.flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    if (channel)
        channel->users++;
    reply = {made->handle, entries, place};
    return 0;
}

int Verbs::resize_cq(const ResizeCq &request, CreateCq::Reply &reply) {
    Cq *const cq = find<Cq>(request.cq);
    if (!cq)
        return EINVAL;
    const sim_profile &profile = *cq->context->device->profile;
    const uint32_t taken = cq->taken(), used = cq->added - taken;
    if (!profile.has_resize_cq)
        return EOPNOTSUPP;
    if (const int error = sim_check_cq(&profile, request.entries, 0))
        return error;
    if (request.entries < used)
        return EINVAL;
    const uint32_t entries = sim_queue_size(&profile, request.entries);
    RingPlace place{};
    Ring *const ring = fabric_.environment.open_ring(
        caller_.session->number, Ring::bytes(entries), place, reply_.descriptor);
    if (!ring)
        return errno == ENOMEM ? ENOMEM : ENFILE;
    ring->entries = entries;
    for (uint32_t i = 0; i < used; i++)
        ring->first()[i] = cq->ring->first()[(taken + i) % cq->entries];
    ring->added = used;
    fabric_.environment.close_ring(cq->ring, Ring::bytes(cq->entries));
    cq->ring = ring;
    cq->added = used;
    cq->entries = entries;
    reply = {cq->handle, entries, place};
    return 0;
}

int Verbs::req_notify(const ReqNotify &request, Empty &) {
    Cq *const cq = find<Cq>(request.cq);
    if (!cq)
        return EINVAL;
    sim_arm(&cq->armed, request.solicited_only);
    return 0;
}

// ---- shared receive queues -----------------------------------------------------------------

// Linux 7.3, drivers/infiniband/core/uverbs_cmd.c, ib_uverbs_open_xrcd()
int Verbs::open_xrcd(const OpenXrcd &request, OpenXrcd::Reply &reply) {
    Context *const context = find<Context>(request.context);
    if (!context)
        return EINVAL;
    if (context->device->removed)
        return EIO;
    if (!sim_has_xrc(context->device->profile))
        return EOPNOTSUPP;
    const Xrcd *found = nullptr;
    for (const auto &[handle, object] : fabric_.objects())
        if (const Xrcd *const other = object->kind == Object::XRCD
                                          ? static_cast<const Xrcd *>(object.get())
                                          : nullptr;
            other && request.has_file && other->has_file &&
            other->context->device == context->device && other->inode == request.inode &&
            other->file_device == request.file_device)
            found = other;
    if (request.has_file && !found && !request.creates)
        return EAGAIN;
    if (found && request.is_exclusive)
        return EINVAL;
    Xrcd *const made = create<Xrcd>();
    made->context = context;
    made->domain = found ? found->domain : made->handle;
    made->has_file = request.has_file;
    made->file_device = request.file_device;
    made->inode = request.inode;
    context->objects++;
    reply.xrcd = made->handle;
    return 0;
}

int Verbs::create_srq(const CreateSrq &request, CreateSrq::Reply &reply) {
    Pd *const pd = find<Pd>(request.pd);
    Xrcd *const xrcd = request.xrcd ? find<Xrcd>(request.xrcd) : nullptr;
    Cq *const cq = request.xrcd ? find<Cq>(request.cq) : nullptr;
    if (!pd || (request.xrcd &&
                (!xrcd || !cq || xrcd->context != pd->context || cq->context != pd->context)))
        return EINVAL;
    const sim_profile &profile = *pd->context->device->profile;
    ibv_srq_attr attr = request.attr;
    ibv_srq_attr reported;
    int error = sim_check_srq(&profile, &attr, &reported);
    Srq *const made = error ? nullptr : create<Srq>(*pd->context->device, error);
    if (!made)
        return error;
    made->pd = pd;
    made->xrcd = xrcd;
    made->cq = cq;
    made->cookie = request.cookie;
    made->attr = attr;
    made->attr.srq_limit = 0;
    for (Object *const used :
         {static_cast<Object *>(pd), static_cast<Object *>(xrcd), static_cast<Object *>(cq)})
        if (used)
            used->users++;
    reply = {made->handle, reported};
    return 0;
}

int Verbs::modify_srq(const ModifySrq &request, Empty &) {
    Srq *const srq = find<Srq>(request.srq);
    if (!srq)
        return EINVAL;
    if (const int error =
            sim_check_srq_change(srq->pd->context->device->profile, &request.attr, request.mask,
                                 &srq->attr.max_wr, srq->receives.size()))
        return error;
    if (request.mask & IBV_SRQ_LIMIT)
        srq->attr.srq_limit = request.attr.srq_limit;
    return 0;
}

int Verbs::query_srq(const QuerySrq &request, ibv_srq_attr &reply) {
    const Srq *const srq = find<Srq>(request.srq);
    if (!srq)
        return EINVAL;
    reply = srq->attr;
    return srq->pd->context->device->profile->has_query_srq ? 0 : EOPNOTSUPP;
}

// ---- queue pairs ---------------------------------------------------------------------------

static bool has_type(const sim_profile &profile, uint32_t type) {
    switch (type) {
    case IBV_QPT_RC:
        return true;
    case IBV_QPT_UC:
        return profile.has_uc;
    case IBV_QPT_UD:
        return profile.has_ud;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return sim_has_xrc(&profile);
    default:
        return false;
    }
}

// Linux 7.3, drivers/infiniband/core/uverbs_cmd.c, create_qp(): a sender of XRC has no
// receives, and a receiver has neither a PD nor queues.
int Verbs::create_qp(const CreateQp &request, CreateQp::Reply &reply) {
    const bool is_xrc_receiver = request.type == IBV_QPT_XRC_RECV,
               is_xrc_sender = request.type == IBV_QPT_XRC_SEND;
    Pd *const pd = is_xrc_receiver ? nullptr : find<Pd>(request.pd);
    Xrcd *const xrcd = is_xrc_receiver ? find<Xrcd>(request.xrcd) : nullptr;
    Context *const context = pd ? pd->context : xrcd ? xrcd->context : nullptr;
    Cq *const send_cq = is_xrc_receiver ? nullptr : find<Cq>(request.send_cq);
    Cq *const recv_cq = is_xrc_receiver || is_xrc_sender ? nullptr : find<Cq>(request.recv_cq);
    Srq *const srq = request.srq ? find<Srq>(request.srq) : nullptr;
    const auto is_usable = [context](const auto *used) {
        return used && used->context == context;
    };
    if (!context || (!is_xrc_receiver && !is_usable(send_cq)) ||
        (!is_xrc_receiver && !is_xrc_sender && !is_usable(recv_cq)) ||
        (request.srq && (!srq || srq->xrcd || !is_usable(srq->pd))))
        return EINVAL;
    const sim_profile &profile = *context->device->profile;
    if (!has_type(profile, request.type))
        return EOPNOTSUPP;
    if (context->device->removed)
        return EIO;
    ibv_qp_cap cap = is_xrc_receiver ? ibv_qp_cap{} : request.cap, reported{};
    int error =
        is_xrc_receiver ? 0 : sim_check_qp(&profile, &cap, srq || is_xrc_sender, &reported);
    Qp *const made = error ? nullptr : create<Qp>(*context->device, error);
    if (!made)
        return error;
    made->context = context;
    made->pd = pd;
    made->send_cq = send_cq;
    made->recv_cq = recv_cq;
    made->srq = is_xrc_sender || is_xrc_receiver ? nullptr : srq;
    made->xrcd = xrcd;
    made->type = static_cast<ibv_qp_type>(request.type);
    made->signals_all = request.sq_sig_all;
    made->send_ops = request.send_ops;
    made->cookie = request.cookie;
    made->attr.cap = cap;
    made->number = fabric_.next_qp++;
    fabric_.qps.emplace(made->number, made);
    for (Object *const used : {static_cast<Object *>(pd), static_cast<Object *>(send_cq),
                               static_cast<Object *>(recv_cq), static_cast<Object *>(made->srq),
                               static_cast<Object *>(xrcd)})
        if (used)
            used->users++;
    reply = {made->handle, made->number, reported};
    return 0;
}

int Verbs::modify_qp(const ModifyQp &request, ModifyQp::Reply &reply) {
    Qp *const qp = find<Qp>(request.qp);
    if (!qp)
        return EINVAL;
    const int error = fabric_.modify_qp(*qp, request.attr, static_cast<int>(request.mask));
    reply.state = qp->attr.qp_state;
    return error;
}

int Verbs::query_qp(const QueryQp &request, QueryQp::Reply &reply) {
    const Qp *const qp = find<Qp>(request.qp);
    if (!qp)
        return EINVAL;
    reply.attr = qp->attr;
    if (qp->context->device->profile->reports_init && qp->attr.qp_state <= IBV_QPS_RTR)
        reply.attr.qp_state = IBV_QPS_INIT;
    reply.attr.cur_qp_state = reply.attr.qp_state;
    return 0;
}

int Verbs::multicast(const Multicast &request, Empty &) {
    Qp *const qp = find<Qp>(request.qp);
    if (!qp)
        return EINVAL;
    if (qp->context->device->removed)
        return EIO;
    if (const int error = sim_check_multicast(qp->context->device->profile, qp->type,
                                              &request.gid, static_cast<uint16_t>(request.lid)))
        return error;
    return request.attaches ? fabric_.attach(*qp, request.gid)
                            : fabric_.detach(*qp, request.gid);
}

// Linux 7.3, drivers/infiniband/core/uverbs_cmd.c, modify_qp_mask(): ignored attributes
static int ignored_of(const Qp &qp) {
    if (qp.type == IBV_QPT_XRC_SEND)
        return IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    if (qp.type == IBV_QPT_XRC_RECV)
        return IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
    return 0;
}

int Fabric::modify_qp(Qp &qp, const ibv_qp_attr &attr, int mask) {
    mask &= ~ignored_of(qp);
    const ibv_qp_state to = mask & IBV_QP_STATE ? attr.qp_state : qp.attr.qp_state;
    if (qp.context->device->removed)
        return EIO;
    if (const int error = sim_check_qp_change(qp.context->device->profile, qp.type,
                                              qp.attr.qp_state, &attr, mask))
        return error;
    if (const int error = mask & IBV_QP_AV ? qp.context->device->check_path(attr.ah_attr) : 0)
        return error;
    if (to == IBV_QPS_INIT && qp.was_reset && !qp.context->device->profile->reuses_reset_qp)
        return EINVAL;
    if (to == IBV_QPS_ERR) {
        fail_qp(*this, qp);
        return 0;
    }
    withdraw_credit(qp);
    copy_attributes(qp.attr, attr, mask);
    if (mask & IBV_QP_RNR_RETRY)
        qp.rnr_retries_left = qp.attr.rnr_retry;
    if (to == IBV_QPS_RESET)
        reset_qp(*this, qp);
    else
        run_sends(*this, qp);
    return 0;
}

Qp *Fabric::find_qp(const Device &device, uint32_t number) {
    const auto found = qps.find(number);
    return found != qps.end() && found->second->context->device == &device ? found->second
                                                                           : nullptr;
}

// InfiniBand and RoCE: both QPs must name each other, and the peer must expect the PSN of `qp`.
// Packets of UC do not contain the number of their QP, and the first one of a message has any
// PSN: Linux 7.3, drivers/infiniband/sw/rxe/rxe_resp.c, check_psn().
Qp *Fabric::peer_of(const Qp &qp) {
    if (qp.context->device->profile->transport == SIM_IWARP) {
        const auto found = qps.find(qp.iwarp_peer);
        return found != qps.end() && found->second->iwarp_peer == qp.number ? found->second
                                                                            : nullptr;
    }
    Device *const device = device_at(qp.attr.ah_attr);
    Qp *const peer = device ? find_qp(*device, qp.attr.dest_qp_num) : nullptr;
    const bool is_expected =
        qp.type == IBV_QPT_UC ||
        (peer && peer->attr.dest_qp_num == qp.number && peer->attr.rq_psn == qp.attr.sq_psn);
    const bool is_peer = peer && peer->type == sim_peer_type(qp.type) && is_expected &&
                         device_at(peer->attr.ah_attr) == qp.context->device;
    return is_peer ? peer : nullptr;
}

Device *Fabric::device_at(const ibv_ah_attr &address) {
    if (address.is_global)
        return device_of(address.grh.dgid);
    for (const auto &host : hosts_)
        for (const auto &device : host->devices)
            if (device->lid == address.dlid && device->profile->transport == SIM_INFINIBAND)
                return device.get();
    return nullptr;
}

void Fabric::connect_iwarp(Qp &qp, Qp &peer) {
    qp.iwarp_peer = peer.number;
    peer.iwarp_peer = qp.number;
    qp.attr.qp_state = peer.attr.qp_state = IBV_QPS_RTS;
}

} // namespace sim
