// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cm.cc -- the requests to the connection manager. Each returns an error number, as the
// function of Linux, drivers/infiniband/core/ucma.c, that has its name.

#include "fabric.hh"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace sim {

namespace {

const int MAX_BACKLOG = 1024;          // ucma.c, max_backlog
const uint32_t REJ_VENDOR_OPTION = 35; // enum ib_cm_rej_reason

bool is_too_long(const CmId &id, unsigned length, sim_message message) {
    return sim_check_private_data(id.device->profile, message, length);
}

} // namespace

// Executes the requests of one process.
struct Cm::Requests {
    Cm &cm;
    Fabric &fabric;
    Session *session;
    Reply &raw_reply;
    int pid;

    template <class Request> int run(const void *bytes, size_t length) {
        Request request;
        if (length < sizeof(request))
            return EINVAL;
        memcpy(&request, bytes, sizeof(request));
        typename Request::Reply reply{};
        const int error = on(request, reply);
        raw_reply.as<typename Request::Reply>() = reply;
        return error;
    }

    // Runs the handler of the request type whose number the message has.
    template <class... Requests> int dispatch(const void *bytes, size_t length) {
        uint32_t op = 0;
        int error = ENOSYS;
        memcpy(&op, bytes, std::min(length, sizeof(op)));
        (void)((op == Requests::OP && (error = run<Requests>(bytes, length), true)) || ...);
        return error;
    }

    // ucma.c, ucma_get_ctx(): the ID of a removed device is closed.
    int find(uint32_t handle, CmId *&id) {
        id = fabric.find<CmId>(session, handle);
        if (!id)
            return ENOENT;
        return id->device && id->device->removed ? ENXIO : 0;
    }
    // ucma.c, ucma_get_ctx_dev()
    int find_with_device(uint32_t handle, CmId *&id) {
        const int error = find(handle, id);
        return error || id->device ? error : EINVAL;
    }

    int on(const CmCreate &request, CmCreate::Reply &reply) {
        Channel *const channel = fabric.find<Channel>(session, request.channel);
        if (!channel || channel->purpose != Channel::CONNECTIONS)
            return EINVAL;
        const unsigned known[] = {RDMA_PS_TCP, RDMA_PS_UDP, RDMA_PS_IPOIB, RDMA_PS_IB};
        if (std::ranges::find(known, request.port_space) == std::end(known))
            return EINVAL;
        CmId *const id = fabric.create<CmId>(session);
        id->pid = pid;
        cm.ids_[id->handle] = id;
        cm.set_channel(*id, *channel);
        id->cookie = request.cookie;
        id->port_space = request.port_space;
        id->qp_type = request.qp_type;
        reply.id = id->handle;
        return 0;
    }

    int on(const CmDestroy &request, CmDestroy::Reply &reply) {
        CmId *id;
        if (find(request.id, id) == ENOENT)
            return ENOENT;
        reply.events = id->events_taken;
        cm.destroy(*id);
        return 0;
    }

    int on(const CmBind &request, CmBind::Reply &reply) {
        CmId *id;
        if (const int error = find(request.id, id))
            return error;
        const int error = cm.bind(*id, request.address, request.privileged);
        reply = cm.route(*id);
        return error;
    }

    // cma.c, rdma_resolve_addr()
    int on(const CmResolveAddr &request, Empty &) {
        CmId *id;
        if (const int error = find(request.id, id))
            return error;
        if (id->state == SIM_CM_IDLE) {
            CmAddress source = request.source;
            if (!source.any.sa_family)
                source.any.sa_family = request.destination.any.sa_family;
            const int error = cm.bind(*id, source, request.privileged);
            if (error)
                return error;
        }
        if (const int error = sim_check_cm_call(id->state, SIM_CM_RESOLVE_ADDR))
            return error;
        id->destination = request.destination;
        id->bound_source = id->source;
        id->bound_device = id->device;
        const int error = cm.choose_source(*id);
        if (error == 0)
            cm.resolve(*id, request.timeout_ms * uint64_t{1000000});
        return error;
    }

    // cma.c, rdma_resolve_route(), since Linux 5.15: a timeout of 0 is refused.
    int on(const CmResolveRoute &request, Empty &) {
        CmId *id;
        if (const int error = find_with_device(request.id, id))
            return error;
        if (const int error = sim_check_cm_call(id->state, SIM_CM_RESOLVE_ROUTE))
            return error;
        if (request.timeout_ms == 0)
            return EINVAL;
        cm.report(*id, {RDMA_CM_EVENT_ROUTE_RESOLVED});
        return 0;
    }

    int on(const CmInitQpAttr &request, CmInitQpAttr::Reply &reply) {
        CmId *id;
        if (const int error = find_with_device(request.id, id))
            return error;
        int mask = 0;
        const int error =
            cm.init_qp_attr(*id, static_cast<ibv_qp_state>(request.state), reply.attr, mask);
        reply.mask = static_cast<uint32_t>(mask);
        return error;
    }

    // cma.c, rdma_listen()
    int on(const CmListen &request, CmListen::Reply &reply) {
        CmId *id;
        if (const int error = find(request.id, id))
            return error;
        CmAddress any{};
        any.any.sa_family = AF_INET;
        int error = id->state == SIM_CM_IDLE ? cm.bind(*id, any, false) : 0;
        if (error == 0)
            error = sim_check_cm_call(id->state, SIM_CM_LISTEN);
        if (error == 0 && id->reuses_address)
            error = cm.check_port(*id, false);
        if (error)
            return error;
        const bool is_limited = request.backlog > 0 && request.backlog < MAX_BACKLOG;
        id->backlog = is_limited ? request.backlog : MAX_BACKLOG;
        id->reuses_address = false;
        id->state = SIM_CM_LISTENING;
        reply = cm.route(*id);
        return 0;
    }

    void set_local(CmId &id, const CmParam &param) {
        id.local = param;
        if (Qp *const qp = cm.qp_of(id))
            qp->cm_id = id.handle;
    }

    // cma.c, rdma_connect_locked()
    int on(const CmConnect &request, Empty &) {
        CmId *id;
        if (const int error = find_with_device(request.id, id))
            return error;
        if (sim_check_cm_call(id->state, SIM_CM_CONNECT) ||
            is_too_long(*id, request.param.private_data_len,
                        id->qp_type == IBV_QPT_UD ? SIM_UD_REQUEST : SIM_REQUEST))
            return EINVAL;
        if (const int error = id->qp_type == IBV_QPT_RC ? cm.connect_now(*id) : 0)
            return error;
        set_local(*id, request.param);
        id->local_ece = request.ece;
        id->psn = static_cast<uint32_t>(fabric.random(1U << 24));
        id->state = SIM_CM_REQ_SENT;
        cm.send(*id, Cm::Message::REQ);
        return 0;
    }

    // cma.c, rdma_accept(): after a failure, the other side is rejected.
    int on(const CmAccept &request, Empty &) {
        CmId *id;
        if (const int error = find_with_device(request.id, id))
            return error;
        if (!id->connects())
            return EINVAL;
        const bool is_reply = request.param.valid;
        if (sim_check_cm_call(id->state, is_reply ? SIM_CM_ACCEPT : SIM_CM_CONFIRM) ||
            (is_reply && is_too_long(*id, request.param.private_data_len, SIM_REPLY))) {
            reject(*id, {}, Cm::REJ_CONSUMER_DEFINED);
            return EINVAL;
        }
        if (!is_reply) {
            id->state = SIM_CM_ESTABLISHED;
            cm.send(*id, Cm::Message::RTU);
            return 0;
        }
        set_local(*id, request.param);
        id->local_ece = request.ece;
        id->cookie = request.cookie;
        id->reports_events = true;
        id->state = SIM_CM_REP_SENT;
        cm.send(*id, Cm::Message::REP, id->local);
        return 0;
    }

    // cm.c, cm_send_rej_locked()
    int reject(CmId &id, const CmParam &param, int reason) {
        if (const int error = sim_check_cm_call(id.state, SIM_CM_REJECT))
            return error;
        id.state = SIM_CM_CLOSED;
        cm.send(id, Cm::Message::REJ, param, reason);
        return 0;
    }

    int on(const CmReject &request, Empty &) {
        CmId *id;
        if (const int error = find_with_device(request.id, id))
            return error;
        if ((request.reason != Cm::REJ_CONSUMER_DEFINED &&
             request.reason != REJ_VENDOR_OPTION) ||
            is_too_long(*id, request.private_data_len, SIM_REJECTION))
            return EINVAL;
        CmParam param{};
        param.private_data_len = request.private_data_len;
        memcpy(param.private_data, request.private_data, sizeof(param.private_data));
        return reject(*id, param, static_cast<int>(request.reason));
    }

    int on(const CmDisconnect &request, Empty &) {
        CmId *id;
        const int error = find_with_device(request.id, id);
        return error ? error : cm.disconnect(*id);
    }

    // cm.c, cm_establish(): the peer's first message overtook its RTU.
    int on(const CmNotify &request, Empty &) {
        CmId *id;
        if (const int error = find_with_device(request.id, id))
            return error;
        if (!id->connects())
            return EINVAL;
        if (id->device->profile->transport == SIM_IWARP)
            return 0;
        if (request.event != IBV_EVENT_COMM_EST)
            return EINVAL;
        if (id->state == SIM_CM_ESTABLISHED)
            return EISCONN;
        if (id->state != SIM_CM_REP_SENT)
            return EINVAL;
        cm.establish(*id);
        return 0;
    }

    // ucma.c, ucma_set_option_id()
    int on(const CmSetOption &request, Empty &) {
        CmId *id;
        if (const int error = find(request.id, id))
            return error;
        if (const int error = sim_check_option(static_cast<int>(request.level),
                                               static_cast<int>(request.name), request.length))
            return error;
        return set_option(*id, request.name, request.value);
    }

    int set_option(CmId &id, uint32_t name, int value) {
        if (name == RDMA_OPTION_ID_TOS) {
            id.tos = static_cast<uint8_t>(value);
        } else if (name == RDMA_OPTION_ID_ACK_TIMEOUT) {
            if (id.qp_type != IBV_QPT_RC && id.qp_type != IBV_QPT_XRC_SEND)
                return EINVAL;
            id.ack_timeout = static_cast<uint8_t>(value);
            id.ack_timeout_was_set = true;
        } else if (name == RDMA_OPTION_ID_REUSEADDR) {
            if (id.state != SIM_CM_IDLE && (!value || id.state == SIM_CM_LISTENING))
                return EINVAL;
            id.reuses_address = value;
        } else {
            if (const int error = sim_check_cm_call(id.state, SIM_CM_SET_AFONLY))
                return error;
            id.is_of_one_family = value;
            id.family_was_set = true;
        }
        return 0;
    }

    // ucma.c, ucma_migrate_id(): moves the events that were not taken.
    int on(const CmMigrate &request, CmMigrate::Reply &reply) {
        Channel *const channel = fabric.find<Channel>(session, request.channel);
        CmId *id;
        if (const int error = find(request.id, id))
            return error;
        if (!channel || channel->purpose != Channel::CONNECTIONS)
            return EINVAL;
        std::vector<Event> events;
        std::vector<Object *> owners = {id};
        for (const uint32_t handle : id->multicasts)
            owners.push_back(fabric.find<CmMulticast>(handle));
        for (const Event &event : id->channel->queue)
            if (std::ranges::find(owners, event.about) != owners.end())
                events.push_back(event);
        for (Object *const owner : owners)
            fabric.remove_events(*owner);
        cm.set_channel(*id, *channel);
        for (const Event &event : events)
            fabric.push(*channel, event);
        reply.events = id->events_taken;
        return 0;
    }

    int on(const CmCreateChannel &, CmCreateChannel::Reply &reply) {
        Channel *const made = fabric.create_channel(session, Channel::CONNECTIONS, raw_reply);
        if (!made)
            return ENFILE;
        reply.channel = made->handle;
        return 0;
    }

    // ucma.c, ucma_close()
    int on(const CmDestroyChannel &request, Empty &) {
        Channel *const channel = fabric.find<Channel>(session, request.channel);
        if (!channel || channel->purpose != Channel::CONNECTIONS)
            return EINVAL;
        if (channel->ids > 0)
            cm.destroy_ids([channel](const CmId &id) { return id.channel == channel; });
        fabric.destroy(*channel);
        return 0;
    }

    // ucma.c, ucma_process_join()
    int on(const CmJoin &request, CmJoin::Reply &reply) {
        CmId *id;
        const int error = find_with_device(request.id, id);
        return error ? error : cm.join(*id, request, reply);
    }

    // ucma.c, ucma_leave_multicast()
    int on(const CmLeave &request, CmLeave::Reply &reply) {
        CmMulticast *const multicast = fabric.find<CmMulticast>(session, request.multicast);
        if (!multicast)
            return ENOENT;
        reply.events = multicast->events_taken;
        cm.leave(*multicast);
        return 0;
    }
};

int Cm::call(Caller &caller, const void *request, size_t length, Reply &reply) {
    Requests requests{*this, fabric_, caller.session, reply, caller.pid};
    return requests
        .dispatch<CmCreate, CmDestroy, CmBind, CmResolveAddr, CmResolveRoute, CmInitQpAttr,
                  CmListen, CmConnect, CmAccept, CmReject, CmDisconnect, CmNotify, CmSetOption,
                  CmMigrate, CmCreateChannel, CmDestroyChannel, CmJoin, CmLeave>(request,
                                                                                 length);
}

void Cm::set_channel(CmId &id, Channel &channel) {
    if (id.channel)
        id.channel->ids--;
    id.channel = &channel;
    channel.ids++;
}

CmId *Cm::id_of(uint32_t handle) const {
    const auto found = ids_.find(handle);
    return found == ids_.end() ? nullptr : found->second;
}

CmId *Cm::id_of(const Qp &qp) const {
    CmId *const id = id_of(qp.cm_id);
    return id && id->device == qp.context->device && id->connects() &&
                   id->local.qp_num == qp.number
               ? id
               : nullptr;
}

Qp *Cm::qp_of(const CmId &id) const {
    return fabric_.find_qp(*id.device, id.local.qp_num);
}

// ucma.c, ucma_destroy_private_ctx(): requests that the program has not taken are destroyed
// with the listening ID.
void Cm::destroy(CmId &id) {
    std::vector<uint32_t> pending;
    for (const Event &event : id.channel->queue)
        if (event.about == &id && event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
            pending.push_back(reinterpret_cast<const CmEvent *>(event.data.data())->id);
    for (const uint32_t handle : pending)
        if (CmId *const request = id_of(handle))
            destroy(*request);
    while (!id.multicasts.empty())
        leave(*fabric_.find<CmMulticast>(id.multicasts.back()));
    notify_peer(id);
    release_port(id);
    fabric_.cancel(id.timer);
    fabric_.cancel(id.deadline);
    ids_.erase(id.handle);
    id.channel->ids--;
    fabric_.destroy(id);
}

void Cm::destroy_ids(const std::function<bool(const CmId &)> &which) {
    std::vector<uint32_t> handles;
    for (const auto &[handle, id] : ids_)
        if (which(*id))
            handles.push_back(handle);
    for (const uint32_t handle : handles)
        if (CmId *const id = id_of(handle))
            destroy(*id);
}

void Cm::event_taken(const Event &event) {
    if (event.about->kind == Object::CM_MULTICAST) {
        static_cast<CmMulticast *>(event.about)->events_taken++;
        return;
    }
    CmId &id = *static_cast<CmId *>(event.about);
    id.events_taken++;
    if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
        id.backlog++;
}

} // namespace sim
