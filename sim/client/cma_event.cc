// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cma_event.cc -- event channels and events.

#include "cma.hh"

#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace sim {

namespace {

struct ShimEvent {
    rdma_cm_event event;
    ShimId *owner;            // the ID of the event; for a request, the listening ID
    ShimMulticast *multicast; // NULL unless the event is about a group
    uint8_t private_data[256];
};

void acknowledge(ShimId *id, ShimMulticast *multicast) {
    pthread_mutex_lock(&id->mutex);
    (multicast ? multicast->events_acked : id->events_acked)++;
    pthread_cond_broadcast(&id->acked);
    pthread_mutex_unlock(&id->mutex);
}

void copy_parameters(ShimEvent *made, const CmEvent &from) {
    const CmParam &param = from.param;
    memcpy(made->private_data, param.private_data, param.private_data_len);
    const void *const data = param.private_data_len ? made->private_data : nullptr;
    if (made->owner->id.qp_type == IBV_QPT_UD) {
        rdma_ud_param &ud = made->event.param.ud;
        ud.private_data = data;
        ud.private_data_len = param.private_data_len;
        ud.ah_attr = from.path;
        ud.qp_num = param.qp_num;
        ud.qkey = from.qkey;
        return;
    }
    rdma_conn_param &conn = made->event.param.conn;
    conn.private_data = data;
    conn.private_data_len = param.private_data_len;
    conn.responder_resources = param.responder_resources;
    conn.initiator_depth = param.initiator_depth;
    conn.flow_control = param.flow_control;
    conn.retry_count = param.retry_count;
    conn.rnr_retry_count = param.rnr_retry_count;
    conn.srq = param.srq;
    conn.qp_num = param.qp_num;
}

// cma.c, ucma_process_conn_req(): a request creates an ID on the channel of the listening ID;
// it is synchronous if the listening ID is. Returns false if the request is dropped.
bool make_id_of_request(ShimEvent *made, const CmEvent &from) {
    ShimId *const listener = made->owner;
    ShimId *const id = new_id(listener->id.channel, listener->id.context, listener->id.ps,
                              listener->id.qp_type);
    if (!id) {
        CmDestroy request = {};
        CmDestroy::Reply reply;
        request.id = from.id;
        call(request, reply);
        return false;
    }
    made->event.listen_id = &listener->id;
    made->event.id = &id->id;
    id->handle = from.id;
    id->initiator_depth = from.param.initiator_depth;
    id->responder_resources = from.param.responder_resources;
    id->remote_ece = from.ece;
    if ((listener->is_synchronous && rdma_migrate_id(&id->id, nullptr)) ||
        show_route(id, from.route)) {
        rdma_destroy_id(&id->id);
        return false;
    }
    return true;
}

// cma.c, ucma_process_conn_resp()
int accept_response(ShimId *id) {
    CmAccept request = {};
    Empty reply;
    request.id = id->handle;
    int ret = modify_to_rtr(id, RDMA_MAX_RESP_RES);
    if (ret == 0)
        ret = modify_to_rts(id, RDMA_MAX_INIT_DEPTH);
    if (ret == 0)
        ret = result(call_on(id->id.channel, request, reply));
    if (ret)
        modify_to_error(id);
    return ret;
}

void on_response(ShimEvent *made, const CmEvent &from) {
    ShimId *const id = made->owner;
    id->remote_ece = from.ece;
    if (!id->id.qp)
        return; // the program accepts the response itself
    made->event.status = accept_response(id);
    made->event.event =
        made->event.status ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
    id->connect_error = made->event.status;
}

// Returns false if the program does not get the event.
bool process(ShimEvent *made, const CmEvent &from) {
    ShimId *const id = made->owner;
    copy_parameters(made, from);
    switch (made->event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        made->event.status = show_route(id, from.route);
        if (made->event.status)
            made->event.event = RDMA_CM_EVENT_ADDR_ERROR;
        return true;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        made->event.status = show_route(id, from.route);
        if (made->event.status)
            made->event.event = RDMA_CM_EVENT_ROUTE_ERROR;
        return true;
    case RDMA_CM_EVENT_CONNECT_REQUEST:
        return make_id_of_request(made, from);
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        on_response(made, from);
        return true;
    case RDMA_CM_EVENT_MULTICAST_JOIN:
        made->event.param.ud.private_data = made->multicast->context;
        made->event.status = on_joined(made->multicast, from.path);
        if (made->event.status)
            made->event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
        return true;
    case RDMA_CM_EVENT_REJECTED:
        if (!id->connect_error)
            modify_to_error(id);
        return !id->connect_error;
    case RDMA_CM_EVENT_DISCONNECTED:
        return !id->connect_error;
    default:
        return true;
    }
}

} // namespace

int complete(ShimId *id) {
    if (!id->is_synchronous)
        return 0;
    if (id->id.event) {
        rdma_ack_cm_event(id->id.event);
        id->id.event = nullptr;
    }
    if (rdma_get_cm_event(id->id.channel, &id->id.event))
        return -1;
    const int status = id->id.event->status;
    if (status == 0)
        return 0;
    if (id->id.event->event == RDMA_CM_EVENT_REJECTED)
        return fail(ECONNREFUSED);
    return fail(status < 0 ? -status : status);
}

} // namespace sim

using namespace sim;

extern "C" {

rdma_event_channel *rdma_create_event_channel(void) {
    CmCreateChannel request = {};
    CmCreateChannel::Reply reply;
    int fd;
    if (!has_devices())
        return nullptr;
    ShimEventChannel *const made = static_cast<ShimEventChannel *>(calloc(1, sizeof(*made)));
    int error = made ? call(request, reply, &fd) : ENOMEM;
    if (!error && fd < 0) { // the process has no room for it
        CmDestroyChannel unused = {};
        Empty destroyed;
        unused.channel = reply.channel;
        (void)call(unused, destroyed);
        error = EMFILE;
    }
    if (error) {
        free(made);
        errno = error;
        return nullptr;
    }
    made->channel.fd = fd;
    made->handle = reply.channel;
    made->process = getpid();
    return &made->channel;
}

void rdma_destroy_event_channel(rdma_event_channel *channel) {
    CmDestroyChannel request = {};
    Empty reply;
    request.channel = shim(channel)->handle;
    call_on(channel, request, reply); // a child only closes its descriptor
    close(channel->fd);
    discard(channel);
}

int rdma_get_cm_event(rdma_event_channel *channel, rdma_cm_event **event) {
    if (!event)
        return fail(EINVAL);
    if (is_inherited(channel))
        return fail(EACCES);
    ShimEvent *const made = static_cast<ShimEvent *>(malloc(sizeof(*made)));
    if (!made)
        return fail(ENOMEM);
    for (;;) {
        TakeEvent::Reply head;
        CmEvent from;
        if (rdma_sim_take_event(channel->fd, shim(channel)->handle, &head, &from, sizeof(from),
                                "rdma_get_cm_event")) {
            const int error = errno;
            free(made);
            return fail(error);
        }
        memset(made, 0, sizeof(*made));
        if (from.type == RDMA_CM_EVENT_MULTICAST_JOIN)
            made->multicast = reinterpret_cast<ShimMulticast *>(head.cookie);
        made->owner =
            made->multicast ? made->multicast->id : reinterpret_cast<ShimId *>(head.cookie);
        made->event.id = &made->owner->id;
        made->event.event = static_cast<rdma_cm_event_type>(from.type);
        made->event.status = from.status;
        if (process(made, from))
            break;
        acknowledge(made->owner, made->multicast);
    }
    *event = &made->event;
    return 0;
}

int rdma_ack_cm_event(rdma_cm_event *event) {
    if (!event)
        return fail(EINVAL);
    ShimEvent *const made = reinterpret_cast<ShimEvent *>(event);
    acknowledge(made->owner, made->multicast);
    discard(made);
    return 0;
}

} // extern "C"
