// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// connect.c -- connects queue pairs of an iWARP device of rdma-sim by the connection manager,
// which alone can connect them. Both are of this process.

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include "program.h"

static struct rdma_event_channel *active, *passive; // the events of one side each

// Leaves out the ends of earlier connections, whose QPs have failed.
static struct rdma_cm_id *wait_for(struct rdma_event_channel *channel,
                                   enum rdma_cm_event_type type) {
    for (;;) {
        struct rdma_cm_event *event;
        must(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event()");
        const enum rdma_cm_event_type got = event->event;
        struct rdma_cm_id *const id = event->id;
        must(rdma_ack_cm_event(event) == 0, "rdma_ack_cm_event()");
        if (got == type)
            return id;
        must(got == RDMA_CM_EVENT_DISCONNECTED, rdma_event_str(got));
    }
}

static struct rdma_cm_id *new_id(struct rdma_event_channel *channel) {
    struct rdma_cm_id *id;
    must(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id()");
    return id;
}

static void listen_at(struct sockaddr *address) {
    must((active = rdma_create_event_channel()), "rdma_create_event_channel()");
    must((passive = rdma_create_event_channel()), "rdma_create_event_channel()");
    struct rdma_cm_id *const id = new_id(passive);
    must(rdma_bind_addr(id, address) == 0, "rdma_bind_addr()");
    must(rdma_listen(id, 1) == 0, "rdma_listen()");
}

void connect_iwarp(uint32_t qp_num, uint32_t peer_num) {
    struct sockaddr_in own = {.sin_family = AF_INET,
                              .sin_port = htons(7471),
                              .sin_addr = {inet_addr("10.77.0.1")}}; // of host1
    struct rdma_conn_param param = {
        .qp_num = qp_num, .responder_resources = 1, .initiator_depth = 1};
    if (!active)
        listen_at((struct sockaddr *)&own);
    struct rdma_cm_id *const id = new_id(active);
    must(rdma_resolve_addr(id, NULL, (struct sockaddr *)&own, 1000) == 0,
         "rdma_resolve_addr()");
    wait_for(active, RDMA_CM_EVENT_ADDR_RESOLVED);
    must(rdma_resolve_route(id, 1000) == 0, "rdma_resolve_route()");
    wait_for(active, RDMA_CM_EVENT_ROUTE_RESOLVED);
    must(rdma_connect(id, &param) == 0, "rdma_connect()");
    struct rdma_cm_id *const request = wait_for(passive, RDMA_CM_EVENT_CONNECT_REQUEST);
    param.qp_num = peer_num;
    must(rdma_accept(request, &param) == 0, "rdma_accept()");
    wait_for(active, RDMA_CM_EVENT_ESTABLISHED);
    wait_for(passive, RDMA_CM_EVENT_ESTABLISHED);
}
