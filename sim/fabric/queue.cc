// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// queue.cc -- requests about completion queues, shared receive queues and queue pairs.

#include "engine.hh"
#include "verbs.hh"

#include <cerrno>

namespace sim {

namespace {

constexpr int AV = IBV_QP_AV, PKEY = IBV_QP_PKEY_INDEX, PORT = IBV_QP_PORT, QKEY = IBV_QP_QKEY,
              ACCESS = IBV_QP_ACCESS_FLAGS, RNR = IBV_QP_MIN_RNR_TIMER, ALT = IBV_QP_ALT_PATH,
              MIG = IBV_QP_PATH_MIG_STATE, CUR = IBV_QP_CUR_STATE, SQ_PSN = IBV_QP_SQ_PSN;
constexpr int RTR_RC =
    AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | RNR;
constexpr int RTS_RC =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

struct Transition {
    ibv_qp_state from, to;
    ibv_qp_type type;
    int required, optional;
};

// Linux 7.3, drivers/infiniband/core/verbs.c, qp_state_table.
constexpr Transition TRANSITIONS[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_RC, PKEY | PORT | ACCESS, 0},
    {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UD, PKEY | PORT | QKEY, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_RC, 0, PKEY | PORT | ACCESS},
    {IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UD, 0, PKEY | PORT | QKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_RC, RTR_RC, ALT | ACCESS | PKEY},
    {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UD, 0, PKEY | QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_RC, RTS_RC, CUR | ALT | ACCESS | RNR | MIG},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UD, SQ_PSN, CUR | QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_RC, 0, CUR | ACCESS | ALT | MIG | RNR},
    {IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UD, 0, CUR | QKEY},
    {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_RC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_UD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_RC, 0, CUR | ALT | ACCESS | RNR | MIG},
    {IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_UD, 0, CUR | QKEY},
    {IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_RC, 0,
     PORT | AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
         IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | ALT | ACCESS | PKEY | RNR | MIG},
    {IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_UD, 0, PKEY | QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, IBV_QPT_UD, 0, CUR | QKEY},
};

bool is_allowed(ibv_qp_state from, ibv_qp_state to, ibv_qp_type type, int mask) {
    mask &= ~IBV_QP_STATE;
    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return mask == 0;
    for (const Transition &row : TRANSITIONS)
        if (row.from == from && row.to == to && row.type == type)
            return (mask & row.required) == row.required &&
                   !(mask & ~(row.required | row.optional));
    return false;
}

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

// Values that devices refuse: Linux 7.3, drivers/infiniband/core/uverbs_cmd.c, modify_qp(),
// core/verbs.c, rdma_check_ah_attr(), and drivers/infiniband/sw/rxe/rxe_qp.c,
// rxe_qp_chk_attr().
bool are_valid(const Qp &qp, const ibv_qp_attr &attr, int mask) {
    const ibv_device_attr &limits = qp.context->device->profile->attr;
    const bool needs_gid = qp.context->device->profile->transport == SIM_ROCE;
    return !((mask & IBV_QP_AV) && needs_gid && !attr.ah_attr.is_global) &&
           !((mask & IBV_QP_PORT) && attr.port_num != 1) &&
           !((mask & IBV_QP_PKEY_INDEX) && attr.pkey_index != 0) &&
           !((mask & IBV_QP_AV) && attr.ah_attr.port_num != 1 && attr.ah_attr.port_num != 0) &&
           !((mask & IBV_QP_PATH_MTU) &&
             (attr.path_mtu < IBV_MTU_256 || attr.path_mtu > IBV_MTU_4096)) &&
           !((mask & IBV_QP_MAX_QP_RD_ATOMIC) &&
             attr.max_rd_atomic > limits.max_qp_init_rd_atom) &&
           !((mask & IBV_QP_MAX_DEST_RD_ATOMIC) &&
             attr.max_dest_rd_atomic > limits.max_qp_rd_atom) &&
           !((mask & IBV_QP_TIMEOUT) && attr.timeout > 31) &&
           !((mask & IBV_QP_CUR_STATE) && attr.cur_qp_state != qp.attr.qp_state);
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
    if (const int error = sim_check_cq(&profile, request.entries, request.vector))
        return error;
    const uint32_t entries = sim_queue_size(&profile, request.entries);
    Ring *const ring = fabric_.environment_.open_ring(Ring::bytes(entries), reply_.descriptor);
    if (!ring)
        return ENOMEM;
    ring->entries = entries;
    reply_.closes_descriptor = true;
    Cq *const made = create<Cq>();
    made->context = context;
    made->channel = channel;
    made->ring = ring;
    made->cookie = request.cookie;
    made->ignores_overrun = request.flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    if (channel)
        channel->users++;
    reply = {made->handle, entries};
    return 0;
}

int Verbs::resize_cq(const ResizeCq &request, CreateCq::Reply &reply) {
    Cq *const cq = find<Cq>(request.cq);
    if (!cq)
        return EINVAL;
    const sim_profile &profile = *cq->context->device->profile;
    const uint32_t used = cq->ring->added - cq->ring->taken;
    if (!profile.has_resize_cq)
        return EOPNOTSUPP;
    if (const int error = sim_check_cq(&profile, request.entries, 0))
        return error;
    if (request.entries < used)
        return EINVAL;
    const uint32_t entries = sim_queue_size(&profile, request.entries);
    Ring *const ring = fabric_.environment_.open_ring(Ring::bytes(entries), reply_.descriptor);
    if (!ring)
        return ENOMEM;
    ring->entries = entries;
    reply_.closes_descriptor = true;
    while (ring->added < used) {
        ring->first()[ring->added] =
            cq->ring->first()[(cq->ring->taken + ring->added) % cq->ring->entries];
        ring->added++;
    }
    fabric_.environment_.close_ring(cq->ring, Ring::bytes(cq->ring->entries));
    cq->ring = ring;
    reply = {cq->handle, entries};
    return 0;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_req_notify_cq(): a queue that is armed
// for any completion stays so.
int Verbs::req_notify(const ReqNotify &request, Empty &) {
    Cq *const cq = find<Cq>(request.cq);
    if (!cq)
        return EINVAL;
    if (cq->armed != Cq::ANY)
        cq->armed = request.solicited_only ? Cq::SOLICITED : Cq::ANY;
    return 0;
}

// ---- shared receive queues -----------------------------------------------------------------

int Verbs::create_srq(const CreateSrq &request, CreateSrq::Reply &reply) {
    Pd *const pd = find<Pd>(request.pd);
    if (!pd)
        return EINVAL;
    const sim_profile &profile = *pd->context->device->profile;
    ibv_srq_attr attr = request.attr;
    ibv_srq_attr reported;
    if (const int error = sim_check_srq(&profile, &attr, &reported))
        return error;
    Srq *const made = create<Srq>();
    made->pd = pd;
    made->cookie = request.cookie;
    made->attr = attr;
    made->attr.srq_limit = 0;
    pd->users++;
    reply = {made->handle, reported};
    return 0;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_srq.c, rxe_srq_chk_attr(): a limit above the size of
// the queue is refused.
int Verbs::modify_srq(const ModifySrq &request, Empty &) {
    Srq *const srq = find<Srq>(request.srq);
    if (!srq || (request.mask & ~(unsigned)(IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR)))
        return EINVAL;
    const sim_profile &profile = *srq->pd->context->device->profile;
    const uint32_t max_wr = request.mask & IBV_SRQ_MAX_WR
                                ? sim_queue_size(&profile, request.attr.max_wr)
                                : srq->attr.max_wr;
    if (max_wr > (uint32_t)profile.attr.max_srq_wr || max_wr < srq->receives.size() ||
        ((request.mask & IBV_SRQ_LIMIT) && request.attr.srq_limit > max_wr))
        return EINVAL;
    srq->attr.max_wr = max_wr;
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

int Verbs::create_qp(const CreateQp &request, CreateQp::Reply &reply) {
    Pd *const pd = find<Pd>(request.pd);
    Cq *const send_cq = find<Cq>(request.send_cq), *const recv_cq = find<Cq>(request.recv_cq);
    Srq *const srq = request.srq ? find<Srq>(request.srq) : nullptr;
    if (!pd || !send_cq || !recv_cq || send_cq->context != pd->context ||
        recv_cq->context != pd->context || (request.srq && !srq) ||
        (srq && srq->pd->context != pd->context))
        return EINVAL;
    const sim_profile &profile = *pd->context->device->profile;
    if (request.type != IBV_QPT_RC && !(request.type == IBV_QPT_UD && profile.has_ud))
        return EOPNOTSUPP;
    if (pd->context->device->removed)
        return EIO;
    ibv_qp_cap cap = request.cap, reported;
    if (const int error = sim_check_qp(&profile, &cap, srq, &reported))
        return error;
    Qp *const made = create<Qp>();
    made->context = pd->context;
    made->pd = pd;
    made->send_cq = send_cq;
    made->recv_cq = recv_cq;
    made->srq = srq;
    made->type = (ibv_qp_type)request.type;
    made->signals_all = request.sq_sig_all;
    made->send_ops = request.send_ops;
    made->cookie = request.cookie;
    made->attr.cap = cap;
    made->number = fabric_.free_number(*pd->context->device->host);
    fabric_.qps_.emplace(made->number, made);
    for (Object *const used :
         {(Object *)pd, (Object *)send_cq, (Object *)recv_cq, (Object *)srq})
        if (used)
            used->users++;
    reply = {made->handle, made->number, reported};
    return 0;
}

int Verbs::modify_qp(const ModifyQp &request, ModifyQp::Reply &reply) {
    Qp *const qp = find<Qp>(request.qp);
    if (!qp)
        return EINVAL;
    const int error = fabric_.modify_qp(*qp, request.attr, (int)request.mask);
    reply.state = qp->attr.qp_state;
    return error;
}

int Verbs::query_qp(const QueryQp &request, QueryQp::Reply &reply) {
    const Qp *const qp = find<Qp>(request.qp);
    if (!qp)
        return EINVAL;
    reply.attr = qp->attr;
    reply.attr.cur_qp_state = qp->attr.qp_state;
    return 0;
}

int Fabric::modify_qp(Qp &qp, const ibv_qp_attr &attr, int mask) {
    const ibv_qp_state to = mask & IBV_QP_STATE ? attr.qp_state : qp.attr.qp_state;
    const bool is_iwarp = qp.context->device->profile->transport == SIM_IWARP;
    if (qp.context->device->removed)
        return EIO;
    // On iWARP, the connection manager alone connects: Linux 7.3,
    // drivers/infiniband/sw/siw/siw_qp.c, siw_qp_modify().
    if (is_iwarp ? (to == IBV_QPS_RTR || to == IBV_QPS_RTS) && to != qp.attr.qp_state
                 : !is_allowed(qp.attr.qp_state, to, qp.type, mask))
        return EINVAL;
    if (!are_valid(qp, attr, mask))
        return EINVAL;
    if (to == IBV_QPS_ERR) {
        fail_qp(qp);
        return 0;
    }
    copy_attributes(qp.attr, attr, mask);
    qp.rnr_retries_left = qp.attr.rnr_retry;
    if (to == IBV_QPS_RESET)
        Engine(*this).reset(qp);
    else
        Engine(*this).run(qp);
    return 0;
}

uint32_t Fabric::free_number(const Host &host) {
    if (!options_.is_stepped)
        return next_qp_++;
    uint32_t number = host.number << 12;
    while (qps_.contains(number))
        number++;
    return number;
}

Qp *Fabric::find_qp(const Device &device, uint32_t number) {
    const auto found = qps_.find(number);
    return found != qps_.end() && found->second->context->device == &device ? found->second
                                                                            : nullptr;
}

// InfiniBand and RoCE: both sides must name each other, and start with the same packet.
Qp *Fabric::peer_of(const Qp &qp) {
    if (qp.context->device->profile->transport == SIM_IWARP) {
        const auto found = qps_.find(qp.iwarp_peer);
        return found != qps_.end() && found->second->iwarp_peer == qp.number ? found->second
                                                                             : nullptr;
    }
    Device *const device = device_at(qp.attr.ah_attr);
    Qp *const peer = device ? find_qp(*device, qp.attr.dest_qp_num) : nullptr;
    const bool is_peer = peer && peer->type == qp.type && peer->attr.dest_qp_num == qp.number &&
                         peer->attr.rq_psn == qp.attr.sq_psn &&
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

void Fabric::disconnect_iwarp(Qp &qp) {
    Qp *const peer = peer_of(qp);
    fail_qp(qp);
    if (peer)
        fail_qp(*peer);
}

void Fabric::fail_qp(Qp &qp) {
    Engine(*this).fail(qp);
}

} // namespace sim
