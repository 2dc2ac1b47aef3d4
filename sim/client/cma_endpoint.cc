// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// cma_endpoint.cc -- endpoints: a CM ID with its queue pair, and requests of clients.

#include "cma.hh"

#include <cstdlib>
#include <cstring>

using namespace sim;

extern "C" {

static int prepare_passive(rdma_cm_id *id, const rdma_addrinfo *res, ibv_pd *pd,
                           const ibv_qp_init_attr *attr) {
    if (rdma_bind_addr(id, res->ai_src_addr))
        return -1;
    if (pd)
        id->pd = pd;
    if (!attr)
        return 0;
    ibv_qp_init_attr *const copy = static_cast<ibv_qp_init_attr *>(malloc(sizeof(*copy)));
    if (!copy)
        return fail(ENOMEM);
    *copy = *attr;
    copy->qp_type = static_cast<ibv_qp_type>(res->ai_qp_type);
    shim(id)->qp_attr = copy;
    return 0;
}

static int prepare_active(rdma_cm_id *id, const rdma_addrinfo *res, ibv_pd *pd,
                          ibv_qp_init_attr *attr) {
    const int TIMEOUT_MS = 2000;
    if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, TIMEOUT_MS) ||
        rdma_resolve_route(id, TIMEOUT_MS))
        return -1;
    if (attr) {
        attr->qp_type = static_cast<ibv_qp_type>(res->ai_qp_type);
        if (rdma_create_qp(id, pd, attr))
            return -1;
    }
    if (res->ai_connect_len == 0)
        return 0;
    shim(id)->connect_data = malloc(res->ai_connect_len);
    if (!shim(id)->connect_data)
        return fail(ENOMEM);
    memcpy(shim(id)->connect_data, res->ai_connect, res->ai_connect_len);
    shim(id)->connect_length = res->ai_connect_len;
    return 0;
}

int rdma_create_ep(rdma_cm_id **id, rdma_addrinfo *res, ibv_pd *pd, ibv_qp_init_attr *attr) {
    rdma_cm_id *made = nullptr;
    if (create_id(nullptr, &made, nullptr, static_cast<rdma_port_space>(res->ai_port_space),
                  static_cast<ibv_qp_type>(res->ai_qp_type)))
        return -1;
    if (res->ai_flags & RAI_PASSIVE ? prepare_passive(made, res, pd, attr)
                                    : prepare_active(made, res, pd, attr)) {
        const int error = errno;
        rdma_destroy_ep(made);
        return fail(error);
    }
    *id = made;
    return 0;
}

void rdma_destroy_ep(rdma_cm_id *id) {
    if (id->qp)
        rdma_destroy_qp(id);
    if (id->srq)
        rdma_destroy_srq(id);
    free(shim(id)->qp_attr);
    shim(id)->qp_attr = nullptr;
    rdma_destroy_id(id);
}

int rdma_get_request(rdma_cm_id *listen, rdma_cm_id **id) {
    ShimId *const own = shim(listen);
    rdma_cm_event *event;
    if (!own->is_synchronous)
        return fail(EINVAL);
    if (listen->event) {
        rdma_ack_cm_event(listen->event);
        listen->event = nullptr;
    }
    if (rdma_get_cm_event(listen->channel, &event))
        return -1;
    // cma.c, rdma_get_request(): as in ucma_complete()
    int error = event->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : abs(event->status);
    if (error == 0 && event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
        error = EINVAL;
    if (error == 0 && own->qp_attr) {
        ibv_qp_init_attr attr = *own->qp_attr;
        error = rdma_create_qp(event->id, listen->pd, &attr) ? errno : 0;
    }
    if (error) {
        listen->event = event;
        return fail(error);
    }
    *id = event->id;
    event->id->event = event;
    return 0;
}

} // extern "C"
