// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cm_messages.cc -- the messages between two CM IDs, and the events that they cause.

#include "fabric.hh"
#include "qp_state.hh"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace sim {

namespace {

// enum ib_cm_rej_reason, enum ib_cm_sidr_status
const int REJ_TIMEOUT = 4, REJ_INVALID_SERVICE_ID = 8;
const int UD_REJECT = 1, UD_UNSUPPORTED = 2;

bool is_iwarp(const CmId &id) {
    return id.device->profile->transport == SIM_IWARP;
}

// The status of a rejection at its receiver: cm.c and cma_iw_handler().
int reason_of(const CmId &id, int reason) {
    if (id.qp_type == IBV_QPT_UD)
        return reason == REJ_INVALID_SERVICE_ID ? UD_UNSUPPORTED : UD_REJECT;
    return is_iwarp(id) ? -ECONNREFUSED : reason;
}

// The state of a sender until its message has a response.
constexpr std::pair<Cm::Message::Kind, sim_cm_state> AWAITED[] = {
    {Cm::Message::REQ, SIM_CM_REQ_SENT},
    {Cm::Message::REP, SIM_CM_REP_SENT},
    {Cm::Message::DREQ, SIM_CM_DREQ_SENT}};

} // namespace

// ---- transport ------------------------------------------------------------------------------

void Cm::send(const Message &message, uint64_t timeout) {
    if (message.source->host->has_power)
        transmit(message, timeout);
    else
        fabric_.at(fabric_.now() + timeout, [this, message] { expire_request(message); });
}

// A message waits for the link. The kernel repeats it instead, with the same result.
void Cm::transmit(const Message &message, uint64_t timeout) {
    if (!message.destination || !fabric_.reachable(*message.source, *message.destination))
        return hold(message, timeout);
    if (message.kind != Message::ARP && fabric_.loses_cm_message(*message.source))
        return repeat(message);
    // No message overtakes another.
    uint64_t &arrival = arrivals_[{message.source, message.destination}];
    arrival =
        std::max(arrival, fabric_.now() + fabric_.delay(*message.source, *message.destination) +
                              fabric_.scheduler().delay(Delayed::MESSAGE));
    if (arrival == fabric_.now())
        return arrive(message);
    fabric_.at(arrival, [this, message] {
        if (fabric_.reachable(*message.source, *message.destination))
            arrive(message);
        else // the link failed in transit
            send(message, TIMEOUT);
    });
}

// cm.c: ib_post_send_mad() repeats a message without a response after its timeout, unless the
// ID is destroyed meanwhile. A lost response is sent again for the repeated request.
void Cm::repeat(const Message &message) {
    const bool is_response = message.kind == Message::REJ || message.kind == Message::DREP;
    fabric_.at(fabric_.now() + TIMEOUT, [this, message, is_response] {
        if (is_response || id_of(message.from))
            send(message, TIMEOUT);
    });
}

void Cm::hold(const Message &message, uint64_t timeout) {
    const uint64_t number = next_message_++;
    Message &waiting = waiting_.emplace(number, message).first->second;
    waiting.timer = fabric_.at(fabric_.now() + timeout, [this, number] {
        const auto expired = waiting_.extract(number);
        expire(expired.mapped());
    });
}

// Limits the time that a live program has for its response. cma.c: CMA_MAX_CM_RETRIES is 15.
// cma_ib_req_handler() and cma_ib_handler() let the CM reply to a repeated REQ or REP by an
// MRA, CMA_CM_MRA_SETTING, so that each further repetition waits 4.096 us * 2^24: cm.c,
// cm_mra_handler(). A DREQ and a request of UD get no MRA. iWARP: siw_cm.h, MPAREQ_TIMEOUT, is
// 10 s, erdma has 20 s, and cxgb4/cm.c, ep_timeout_secs, 60 s, which is that of all devices
// here.
void Cm::await_response(CmId &from, const Message &message) {
    constexpr uint64_t RETRIES = 15, MRA_TIMEOUT = uint64_t{4096} << 24;
    constexpr uint64_t IWARP_TIMEOUT = 60'000'000'000;
    if (std::ranges::find(AWAITED, std::pair(message.kind, from.state)) == std::end(AWAITED))
        return;
    const bool has_mra = message.kind != Message::DREQ && from.qp_type != IBV_QPT_UD;
    const uint64_t timeout = is_iwarp(from) ? IWARP_TIMEOUT
                             : has_mra      ? TIMEOUT + RETRIES * MRA_TIMEOUT
                                            : TIMEOUT + RETRIES * TIMEOUT;
    fabric_.cancel(from.deadline);
    from.deadline =
        fabric_.set_deadline(fabric_.now() + timeout, [this, message] { expire(message); });
}

void Cm::send(const CmId &from, Message::Kind kind, const CmParam &param, int reason) {
    send(
        {kind, from.handle, from.peer, from.device, device_of(from.destination), reason, param},
        TIMEOUT);
}

void Cm::links_changed() {
    std::vector<uint64_t> ready;
    for (const auto &[number, message] : waiting_)
        if (message.destination && fabric_.reachable(*message.source, *message.destination))
            ready.push_back(number);
    for (const uint64_t number : ready) {
        const auto message = waiting_.extract(number);
        fabric_.cancel(message.mapped().timer);
        send(message.mapped(), TIMEOUT);
    }
}

void Cm::arrive(const Message &message) {
    fabric_.scheduler().arrived(message);
    if (message.kind != Message::ARP)
        Fabric::count_mad(*message.source, message.destination);
    CmId *const from = id_of(message.from);
    if (from)
        await_response(*from, message);
    if (message.kind == Message::ARP || message.kind == Message::REQ) {
        if (from && message.kind == Message::ARP && from->state == SIM_CM_RESOLVING)
            on_resolved(*from);
        if (from && message.kind == Message::REQ && from->state == SIM_CM_REQ_SENT)
            on_req(*from, *message.destination);
        return;
    }
    CmId *const to = id_of(message.to);
    if (to && to->peer == message.from)
        deliver(message, *to);
    else
        reply_for_missing_id(message);
}

void Cm::deliver(const Message &message, CmId &to) {
    switch (message.kind) {
    case Message::REP:
        return on_rep(to, message.param);
    case Message::RTU:
        return establish(to);
    case Message::REJ:
        return on_rej(to, message.reason, message.param);
    case Message::DREQ:
        return on_dreq(to);
    default:
        return on_drep(to, 0);
    }
}

// The receiver was destroyed: cm.c, cm_issue_drep(). A REP gets no response and expires.
void Cm::reply_for_missing_id(const Message &message) {
    if (message.kind == Message::DREQ)
        send({Message::DREP, message.to, message.from, message.destination, message.source},
             TIMEOUT);
    if (message.kind == Message::REP)
        fabric_.at(fabric_.now() + TIMEOUT, [this, message] { expire(message); });
}

// The response to a request is lost: cma.c, cma_ib_handler(), IB_CM_REQ_ERROR and
// IB_CM_DREQ_ERROR.
void Cm::expire_request(const Message &response) {
    CmId *const to = id_of(response.to);
    if (!to || to->peer != response.from)
        return;
    if (to->state == SIM_CM_REQ_SENT &&
        (response.kind == Message::REP || response.kind == Message::REJ))
        report(*to, {RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT});
    if (response.kind == Message::DREP)
        on_drep(*to, -ETIMEDOUT);
}

void Cm::expire(const Message &message) {
    if (message.kind != Message::ARP)
        Fabric::count_mad(*message.source, nullptr);
    expire_request(message);
    CmId *const id = id_of(message.from);
    if (!id)
        return;
    if (message.kind == Message::ARP && id->state == SIM_CM_RESOLVING) {
        id->source = id->bound_source;
        id->device = id->bound_device;
        report(*id, {RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT});
    } else if ((message.kind == Message::REQ && id->state == SIM_CM_REQ_SENT) ||
               (message.kind == Message::REP && id->state == SIM_CM_REP_SENT)) {
        report(*id, {RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT});
    } else if (message.kind == Message::DREQ) {
        on_drep(*id, -ETIMEDOUT);
    }
}

// ---- addresses ------------------------------------------------------------------------------

// A known neighbour needs no request: addr.c, dst_fetch_ha().
void Cm::resolve(CmId &id, uint64_t timeout) {
    Device *const destination = device_of(id.destination);
    id.state = SIM_CM_RESOLVING;
    if (sim_is_multicast(&id.destination.any)) // addr.c: such an address has no neighbour
        return report(id, {RDMA_CM_EVENT_ADDR_RESOLVED});
    if (destination && neighbours_.contains({id.device, destination}))
        return on_resolved(id);
    send({Message::ARP, id.handle, 0, id.device, destination}, timeout);
}

void Cm::on_resolved(CmId &id) {
    Device *const destination = device_of(id.destination);
    neighbours_.insert({id.device, destination});
    neighbours_.insert({destination, id.device});
    report(id, {RDMA_CM_EVENT_ADDR_RESOLVED});
}

// ---- connecting -----------------------------------------------------------------------------

void Cm::refuse(CmId &from, Device &at, int reason) {
    send({Message::REJ, 0, from.handle, &at, from.device, reason}, TIMEOUT);
}

// Linux 7.3, drivers/infiniband/sw/siw/siw_cm.c, siw_connect() and kernel_bindconnect(): the
// call opens the TCP connection. Returns its error; 0 also for drivers that report it by an
// event.
int Cm::connect_now(const CmId &id) const {
    if (!id.device->profile->connects_in_call)
        return 0;
    Device *const at = device_of(id.destination);
    if (!at || !fabric_.reachable(*id.device, *at) || !fabric_.reachable(*at, *id.device))
        return EHOSTUNREACH;
    return find_listener(id, *at) ? 0 : ECONNREFUSED;
}

// cma.c, cma_ib_req_handler(), and ucma.c, ucma_connect_event_handler()
void Cm::on_req(CmId &from, Device &at) {
    CmId *const listener = find_listener(from, at);
    if (!listener || listener->backlog == 0)
        return refuse(from, at, listener ? REJ_CONSUMER_DEFINED : REJ_INVALID_SERVICE_ID);
    CmId &id = *fabric_.create<CmId>(listener->session);
    id.pid = listener->pid;
    ids_[id.handle] = &id;
    id.state = SIM_CM_REQ_RECEIVED;
    set_channel(id, *listener->channel);
    id.reports_events = false;
    id.is_passive = true;
    id.port_space = listener->port_space;
    id.qp_type = sim_peer_type(static_cast<ibv_qp_type>(from.qp_type));
    id.device = &at;
    id.source = from.destination;
    id.destination = from.source;
    id.tos = listener->tos;
    id.peer = from.handle;
    id.psn = static_cast<uint32_t>(fabric_.random(1U << 24));
    id.peer_psn = from.psn;
    id.remote = from.local;
    id.remote_ece = from.local_ece;
    from.peer = id.handle;
    from.peer_psn = id.psn;
    listener->backlog--;
    report(*listener, {RDMA_CM_EVENT_CONNECT_REQUEST, 0, &id.remote,
                       id.qp_type == IBV_QPT_UD ? SIM_UD_REQUEST : SIM_REQUEST, &id});
}

void Cm::on_rep(CmId &id, const CmParam &param) {
    if (id.state != SIM_CM_REQ_SENT)
        return;
    id.remote = param;
    const CmId *const peer = id_of(id.peer);
    if (peer)
        id.remote_ece = peer->local_ece;
    if (id.qp_type == IBV_QPT_UD) {
        report(id, {RDMA_CM_EVENT_ESTABLISHED, 0, &id.remote, SIM_UD_REPLY});
        id.state = SIM_CM_CLOSED; // UD: the last message
    } else if (is_iwarp(id)) {
        establish_iwarp(id);
    } else {
        report(id, {RDMA_CM_EVENT_CONNECT_RESPONSE, 0, &id.remote, SIM_REPLY});
    }
}

// iwcm.c: the providers move the QPs; no third message follows.
void Cm::establish_iwarp(CmId &id) {
    CmId *const peer = id_of(id.peer);
    Qp *const qp = qp_of(id), *const other = peer ? qp_of(*peer) : nullptr;
    if (!qp || !other) {
        report(id, {RDMA_CM_EVENT_CONNECT_ERROR, -EINVAL});
        return;
    }
    fabric_.connect_iwarp(*qp, *other);
    report(id, {RDMA_CM_EVENT_ESTABLISHED, 0, &id.remote});
    establish(*peer);
}

void Cm::establish(CmId &id) {
    if (id.state == SIM_CM_REP_SENT)
        report(id, {RDMA_CM_EVENT_ESTABLISHED});
}

void Cm::on_rej(CmId &id, int reason, const CmParam &param) {
    if (id.state < SIM_CM_REQ_SENT || id.state > SIM_CM_ESTABLISHED)
        return;
    const int status = reason_of(id, reason);
    if (id.qp_type == IBV_QPT_UD)
        report(id, {RDMA_CM_EVENT_UNREACHABLE, status, &param, SIM_UD_REPLY});
    else
        report(id, {RDMA_CM_EVENT_REJECTED, status, &param, SIM_REJECTION});
}

// ---- disconnecting --------------------------------------------------------------------------

void Cm::report_disconnected(CmId &id, int status) {
    if (!id.is_disconnected)
        report(id, {RDMA_CM_EVENT_DISCONNECTED, status});
    id.is_disconnected = true;
}

// cm.c, cm_dreq_handler(): the program replies, by rdma_disconnect() or rdma_destroy_id().
void Cm::on_dreq(CmId &id) {
    if (is_iwarp(id))
        return close_iwarp(id, qp_of(id));
    if (id.state < SIM_CM_REP_SENT || id.state == SIM_CM_CLOSED)
        return;
    if (id.state == SIM_CM_TIMEWAIT)
        return send(id, Message::DREP);
    id.state = SIM_CM_DREQ_RECEIVED;
    report_disconnected(id, 0);
}

void Cm::on_drep(CmId &id, int status) {
    if (id.state != SIM_CM_DREQ_SENT)
        return;
    report_disconnected(id, status);
    enter_timewait(id);
}

void Cm::enter_timewait(CmId &id) {
    id.state = SIM_CM_TIMEWAIT;
    fabric_.cancel(id.deadline);
    id.timer = fabric_.at(fabric_.now() + TIMEWAIT, [this, handle = id.handle] {
        if (CmId *const expired = id_of(handle))
            report(*expired, {RDMA_CM_EVENT_TIMEWAIT_EXIT});
    });
}

// cma.c, rdma_disconnect()
int Cm::disconnect(CmId &id) {
    if (const int error = sim_check_cm_call(id.state, SIM_CM_DISCONNECT))
        return error;
    if (is_iwarp(id)) {
        // rdma-core 56, librdmacm/cma.c, rdma_disconnect() fails the QP in every state of the
        // ID.
        Qp *const qp = qp_of(id);
        if (qp && id.state == SIM_CM_ESTABLISHED)
            qp->is_idle = qp->sends.empty() && !id.device->profile->flushes_late_posts;
        if (id.state == SIM_CM_ESTABLISHED)
            send(id, Message::DREQ);
        close_iwarp(id, qp);
        if (qp)
            fail_qp(fabric_, *qp);
    } else if (id.state == SIM_CM_ESTABLISHED) {
        id.state = SIM_CM_DREQ_SENT;
        send(id, Message::DREQ);
    } else if (id.state == SIM_CM_DREQ_RECEIVED) {
        send(id, Message::DREP);
        enter_timewait(id);
    }
    return 0;
}

// On iWARP, the end of the TCP connection moves the QP to the error state.
void Cm::close_iwarp(CmId &id, Qp *qp) {
    if (id.state != SIM_CM_ESTABLISHED)
        return;
    id.state = SIM_CM_CLOSED;
    if (qp)
        fail_qp(fabric_, *qp);
    report_disconnected(id, 0);
}

void Cm::qp_failed(Qp &qp) {
    CmId *const id = id_of(qp);
    if (!id || !is_iwarp(*id) || id->state != SIM_CM_ESTABLISHED)
        return;
    send(*id, Message::DREQ);
    close_iwarp(*id, nullptr);
}

void Cm::qp_destroyed(Qp &qp) {
    qp_failed(qp);
}

// cm.c, cm_destroy_id(): the peer is notified unless the connection has ended.
void Cm::notify_peer(CmId &id) {
    switch (id.state) {
    case SIM_CM_REQ_SENT:
        return send(id, Message::REJ, {}, REJ_TIMEOUT);
    case SIM_CM_REQ_RECEIVED:
    case SIM_CM_REP_SENT:
    case SIM_CM_REP_RECEIVED:
        return send(id, Message::REJ, {}, REJ_CONSUMER_DEFINED);
    case SIM_CM_ESTABLISHED:
        return send(id, Message::DREQ);
    case SIM_CM_DREQ_RECEIVED:
        return send(id, Message::DREP);
    default:
        return;
    }
}

// cma.c, cma_process_remove(). A request that the ID has not replied to expires at its sender.
void Cm::device_removed(Device &device) {
    for (const auto &[handle, id] : ids_) {
        if (!id->is_attached_to(device))
            continue;
        if (id->state == SIM_CM_REQ_RECEIVED)
            send(*id, Message::REJ);
        report(*id, {RDMA_CM_EVENT_DEVICE_REMOVAL});
    }
}

// cma.c, cma_netdev_change(): reports to the IDs of the device.
void Cm::address_changed(Device &device) {
    for (const auto &[handle, id] : ids_)
        if (id->is_attached_to(device))
            report(*id, {RDMA_CM_EVENT_ADDR_CHANGE});
}

// ---- events ---------------------------------------------------------------------------------

// ucma.c, ucma_event_handler(): an ID reports no events before its request is accepted. The
// depth of the sender's initiator is the depth of the receiver's responder: cm.c,
// cm_format_req_event().
void Cm::report(CmId &id, const Report &report) {
    const CmId &about = report.about ? *report.about : id;
    id.state = sim_cm_state_after(id.state, report.type);
    if (std::ranges::find(AWAITED, id.state, [](auto &each) { return each.second; }) ==
        std::end(AWAITED))
        fabric_.cancel(id.deadline);
    if (!id.reports_events)
        return;
    CmEvent event{};
    event.id = about.handle;
    event.type = report.type;
    event.status = report.status;
    event.ece = about.remote_ece;
    if (report.param) {
        event.param = *report.param;
        event.param.responder_resources = report.param->initiator_depth;
        event.param.initiator_depth = report.param->responder_resources;
        event.param.private_data_len = sim_received_data(about.device->profile, report.message,
                                                         report.param->private_data_len);
    }
    event.route = route(about);
    if (about.qp_type == IBV_QPT_UD && about.device)
        event.path = path_attr(about);
    event.qkey = RDMA_UDP_QKEY;
    push(id, id, event);
}

// The owner of an event is the ID, or one of its multicast groups.
void Cm::push(const CmId &id, Object &owner, const CmEvent &event) {
    const auto *const bytes = reinterpret_cast<const std::byte *>(&event);
    fabric_.push(*id.channel, {&owner, owner.cookie, event.type, 0,
                               std::vector<std::byte>(bytes, bytes + sizeof(event))});
}

} // namespace sim
