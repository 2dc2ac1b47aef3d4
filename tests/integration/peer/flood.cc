// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flood.cc -- a client that uses only librdmacm

#include "peer.hh"

#include <rdma/rdma_cma.h>

namespace {

// Requests count= connections, with invented queue pair numbers, and completes none. The
// requests exist until the process ends.
void flood(const Args &args) {
    const uint64_t count = args.number("count");
    rdma_event_channel *events = rdma_create_event_channel();
    rdma_addrinfo hints = {}, *address = nullptr;
    hints.ai_port_space = RDMA_PS_TCP;
    require_system(rdma_getaddrinfo(args.text("addr").c_str(), args.text("port").c_str(),
                                    &hints, &address) == 0,
                   "rdma_getaddrinfo");
    require_system(events != nullptr, "rdma_create_event_channel");
    for (uint64_t i = 0; i < count; i++) {
        rdma_cm_id *id = nullptr;
        require_system(rdma_create_id(events, &id, nullptr, RDMA_PS_TCP) == 0 &&
                           rdma_resolve_addr(id, nullptr, address->ai_dst_addr, 5000) == 0,
                       "rdma_resolve_addr");
    }
    for (uint64_t requested = 0; requested < count;) {
        rdma_cm_event *event = nullptr;
        require_system(rdma_get_cm_event(events, &event) == 0, "rdma_get_cm_event");
        rdma_cm_id *id = event->id;
        const rdma_cm_event_type type = event->event;
        rdma_ack_cm_event(event);
        if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
            require_system(rdma_resolve_route(id, 5000) == 0, "rdma_resolve_route");
            continue;
        }
        rdma_conn_param param = {};
        param.qp_num = 0x100 + static_cast<uint32_t>(requested++);
        param.retry_count = 7;
        param.responder_resources = param.initiator_depth = 1;
        require_system(type == RDMA_CM_EVENT_ROUTE_RESOLVED && rdma_connect(id, &param) == 0,
                       rdma_event_str(type));
    }
}

const Commands here{{"flood", flood}};

} // namespace
