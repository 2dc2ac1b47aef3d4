// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm_connect.c -- the calls that lead to a connection or away from it.

#include "cm.h"

#include <errno.h>
#include <string.h>

static int lead_to_device(struct fake_call *call, struct fake_id *id, struct sockaddr *addr,
                          int timeout_ms) {
    call->resolve.addr = addr;
    call->resolve.timeout_ms = timeout_ms;
    if (!id || call->failed)
        return fake_answer(call);
    if (!addr)
        fake_misuse("%s: no address", call->name);
    id->id.verbs = fake_device()->no_device ? NULL : fake_context(0);
    id->id.port_num = 1;
    return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_bind_addr", id);
    return lead_to_device(call, fake_find_id(id, "rdma_bind_addr"), addr, 0);
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr,
                      struct sockaddr *dst_addr, int timeout_ms) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_resolve_addr", id);
    call->resolve.source = src_addr;
    return lead_to_device(call, fake_find_id(id, "rdma_resolve_addr"), dst_addr, timeout_ms);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_resolve_route", id);
    call->resolve.timeout_ms = timeout_ms;
    if (fake_find_id(id, "rdma_resolve_route") && !id->verbs)
        fake_misuse("rdma_resolve_route: before the address");
    return fake_answer(call);
}

int rdma_listen(struct rdma_cm_id *id, int backlog) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_listen", id);
    call->backlog = backlog;
    struct fake_id *found = fake_find_id(id, "rdma_listen");
    if (found && !call->failed)
        found->listening = true;
    return fake_answer(call);
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_create_qp_ex", id);
    fake_touch(&attr->cap, sizeof(attr->cap));
    fake_touch(&attr->comp_mask, sizeof(attr->comp_mask));
    if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
        fake_touch(&attr->send_ops_flags, sizeof(attr->send_ops_flags));
    call->qp = *attr;
    if (!fake_find_id(id, "rdma_create_qp_ex") || call->failed)
        return fake_answer(call);
    id->qp = fake_qp_create(attr, id->verbs);
    if (!id->qp)
        return -1;
    id->pd = attr->pd;
    return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id) {
    FAKE_LOCKED;
    fake_note("rdma_destroy_qp", id);
    if (!fake_find_id(id, "rdma_destroy_qp"))
        return;
    fake_qp_destroy(id->qp, "rdma_destroy_qp");
    id->qp = NULL;
}

static int start_connection(struct fake_call *call, struct fake_id *id,
                            const struct rdma_conn_param *param) {
    call->connect.param = *param;
    fake_touch(param, offsetof(struct rdma_conn_param, srq));
    if (param->private_data_len)
        memcpy(call->connect.data, param->private_data, param->private_data_len);
    if (!id || call->failed)
        return fake_answer(call);
    if (!id->channel)
        fake_misuse("%s: blocks on a synchronous CM ID", call->name);
    if (!id->id.qp)
        fake_misuse("%s: no QP", call->name);
    return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_connect", id);
    struct fake_id *found = fake_find_id(id, "rdma_connect");
    if (found && found->incoming)
        fake_misuse("rdma_connect: on an incoming request");
    return start_connection(call, found, conn_param);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_accept", id);
    struct fake_id *found = fake_find_id(id, "rdma_accept");
    if (found && (!found->incoming || found->answered))
        fake_misuse("rdma_accept: not an unanswered incoming request");
    if (found && !call->failed)
        found->answered = true;
    return start_connection(call, found, conn_param);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_reject", id);
    call->connect.param.private_data_len = private_data_len;
    if (private_data_len)
        memcpy(call->connect.data, private_data, private_data_len);
    struct fake_id *found = fake_find_id(id, "rdma_reject");
    if (found && (!found->incoming || found->answered))
        fake_misuse("rdma_reject: not an unanswered incoming request");
    if (found)
        found->answered = true; // refused or not: nothing more can be said
    return fake_answer(call);
}

int rdma_disconnect(struct rdma_cm_id *id) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_disconnect", id);
    if (fake_find_id(id, "rdma_disconnect") && !id->qp)
        fake_misuse("rdma_disconnect: no QP");
    return fake_answer(call);
}

const char *rdma_event_str(enum rdma_cm_event_type event) {
    static const char *const names[] = {
        "RDMA_CM_EVENT_ADDR_RESOLVED",   "RDMA_CM_EVENT_ADDR_ERROR",
        "RDMA_CM_EVENT_ROUTE_RESOLVED",  "RDMA_CM_EVENT_ROUTE_ERROR",
        "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
        "RDMA_CM_EVENT_CONNECT_ERROR",   "RDMA_CM_EVENT_UNREACHABLE",
        "RDMA_CM_EVENT_REJECTED",        "RDMA_CM_EVENT_ESTABLISHED",
        "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
        "RDMA_CM_EVENT_MULTICAST_JOIN",  "RDMA_CM_EVENT_MULTICAST_ERROR",
        "RDMA_CM_EVENT_ADDR_CHANGE",     "RDMA_CM_EVENT_TIMEWAIT_EXIT",
    };
    return event < sizeof(names) / sizeof(names[0]) ? names[event] : "UNKNOWN EVENT";
}
