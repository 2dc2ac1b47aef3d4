// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm.c -- librdmacm that does nothing: each listener has a request, each connect succeeds

#include "provider.h"

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

// The endpoint's channel is the only one with a listener: its events are requests.
static struct rdma_cm_id *listener;

// The device of an address.
static struct ibv_context *device_at(const struct sockaddr *addr) {
#ifdef PROVIDER_NATIVE
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)addr;
    if (in->sin_addr.s_addr == inet_addr(PROVIDER_NATIVE_ADDRESS))
        return provider_native_device();
#endif
    return provider_device();
}

struct rdma_event_channel *rdma_create_event_channel(void) {
    provider_count(__func__);
    return provider_object(sizeof(struct rdma_event_channel));
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel) {
    provider_count(__func__);
}

static struct rdma_cm_id *new_id(struct rdma_event_channel *channel) {
    struct rdma_cm_id *id = provider_object(sizeof(*id));
    id->channel = channel;
    id->verbs = provider_device();
    return id;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps) {
    provider_count(__func__);
    *id = new_id(channel);
    return 0;
}

int rdma_destroy_id(struct rdma_cm_id *id) {
    provider_count(__func__);
    if (listener == id)
        listener = NULL;
    return 0;
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
                     struct rdma_addrinfo **result) {
    provider_count(__func__);
    struct sockaddr_in *named = provider_object(sizeof(*named));
    if (node != NULL)
        named->sin_addr.s_addr = inet_addr(node);
    *result = provider_object(sizeof(**result));
    (*result)->ai_src_addr = (struct sockaddr *)named;
    (*result)->ai_dst_addr = node != NULL ? (struct sockaddr *)named : hints->ai_dst_addr;
    return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *result) {
    provider_count(__func__);
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr) {
    provider_count(__func__);
    id->verbs = device_at(addr);
    return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
                      int timeout_ms) {
    provider_count(__func__);
    id->verbs = device_at(dst);
    return 0;
}

// These calls are counted and succeed.
SUCCEEDS(rdma_resolve_route, struct rdma_cm_id *id, int timeout_ms)
SUCCEEDS(rdma_set_option, struct rdma_cm_id *id, int level, int optname, void *optval,
         size_t optlen)
SUCCEEDS(rdma_connect, struct rdma_cm_id *id, struct rdma_conn_param *param)
SUCCEEDS(rdma_accept, struct rdma_cm_id *id, struct rdma_conn_param *param)
SUCCEEDS(rdma_reject, struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
SUCCEEDS(rdma_disconnect, struct rdma_cm_id *id)
SUCCEEDS(rdma_ack_cm_event, struct rdma_cm_event *event)

int rdma_listen(struct rdma_cm_id *id, int backlog) {
    provider_count(__func__);
    listener = id;
    return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attributes) {
    provider_count(__func__);
#ifdef PROVIDER_NATIVE
    if (id->verbs == provider_native_device())
        id->qp = provider_native_qp(attributes->send_ops_flags);
    else
#endif
        id->qp = provider_object(sizeof(*id->qp));
    id->qp->context = provider_context_of(id->verbs, attributes->cap.max_send_wr);
    id->qp->send_cq = attributes->send_cq;
    id->qp->recv_cq = attributes->recv_cq;
    id->qp->state = IBV_QPS_RTS; // from the start: no call moves it
    return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id) {
    provider_count(__func__);
    id->qp = NULL;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel) {
    provider_count(__func__);
    id->channel = channel;
    return 0;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event) {
    provider_count(__func__);
    *event = provider_object(sizeof(**event));
    if (listener != NULL && listener->channel == channel) {
        (*event)->event = RDMA_CM_EVENT_CONNECT_REQUEST;
        (*event)->listen_id = listener;
        (*event)->id = new_id(channel);
    } else {
        (*event)->event = RDMA_CM_EVENT_ESTABLISHED;
    }
    return 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event) {
    return "event";
}
