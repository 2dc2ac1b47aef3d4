// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm_connect.c -- calls on a CM ID: addresses, routes, queue pairs, connections.

#include "internal.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <string.h>

// rdma-core 56, librdmacm/cma.c, ucma_addrlen(), on a kernel with AF_IB: 0 for an address
// that rdma_bind_addr() and rdma_resolve_addr() refuse with EINVAL.
static size_t address_length(const struct sockaddr *addr) {
    return addr && addr->sa_family == AF_IB ? sizeof(struct sockaddr_ib)
                                            : sim_address_length(addr);
}

static const struct sockaddr *copy_address(struct sockaddr_storage *to,
                                           const struct sockaddr *addr) {
    if (!addr)
        return NULL;
    fake_copy(to, addr, address_length(addr));
    return (const struct sockaddr *)(const void *)to;
}

// Linux 7.3, drivers/infiniband/core/addr.c, rdma_translate_ip(): only addresses of this
// machine can be bound. Addresses of 192.0.2.0/24 are reserved for documentation (RFC 5737).
static bool is_foreign(const struct sockaddr *addr) {
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)addr;
    return addr->sa_family == AF_INET && (ntohl(in->sin_addr.s_addr) >> 8) == 0xc00002u;
}

// Linux 7.3, drivers/infiniband/core/cma.c, cma_alloc_any_port().
static void choose_port(struct sockaddr *addr) {
    static in_port_t last = 40000;
    if (addr->sa_family != AF_IB && sim_port(addr) == 0)
        sim_set_port(addr, htons(++last));
}

// Linux 7.3, drivers/infiniband/core/cma.c, cma_check_port(), for source ports only: a
// wildcard address occupies its port on every address.
static int source_port_refusal(const struct fake_id *id, const struct sockaddr *source) {
    for (struct fake_id *other = NULL; (other = fake_next(FAKE_ID, other));) {
        const struct sockaddr *taken = &other->id.route.addr.src_addr;
        if (other == id || !other->has_source_port || sim_port(taken) != sim_port(source))
            continue;
        if (sim_is_wildcard(taken) || sim_is_wildcard(source))
            return EADDRNOTAVAIL;
        if (sim_is_same_host(taken, source))
            return EADDRINUSE;
    }
    return 0;
}

// Sets the local address to the source. A wildcard address and port 0 are replaced, as by
// Linux 7.3, drivers/infiniband/core/cma.c, addr_handler().
static void bind_source(struct fake_id *id, const struct sockaddr *source, int family) {
    struct rdma_addr *const addr = &id->id.route.addr;
    const in_port_t port = source ? sim_port(source) : 0;
    if (source && !sim_is_wildcard(source))
        memcpy(&addr->src_storage, source, address_length(source));
    else
        fake_number_address(&addr->src_storage, family == AF_INET6 ? 1 : 0);
    sim_set_port(&addr->src_addr, port);
    id->has_source_port = port != 0;
    choose_port(&addr->src_addr);
}

// The kernel selects the device of an address; librdmacm queries it in ucma_query_addr(), and
// leaves verbs NULL if there is none (wildcard addresses).
void fake_bind_to_device(struct fake_id *id) {
    id->id.verbs = fake_device()->no_device ? NULL : fake_context(0);
    id->id.port_num = 1;
}

// rdma-core 56, librdmacm/cma.c, rdma_resolve_addr() and rdma_resolve_route(): on an ID with a
// channel they return once the kernel has the request, and an event reports the result. Linux
// 7.3, drivers/infiniband/core/cma.c, addr_handler() and cma_work_handler().
static int begin(struct fake_id *id, const char *name, enum rdma_cm_event_type done,
                 enum rdma_cm_event_type failed) {
    int error;
    if (fake_fault_due(name, &error))
        fake_report_event(id, failed, -error);
    else if (!fake_device()->silent)
        fake_report_event(id, done, 0);
    return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr) {
    FAKE_ID_CALL(id);
    call->resolve.addr = copy_address(&call->resolve.addr_copy, addr);
    if (!found || call->failed || address_length(addr) == 0 ||
        sim_check_cm_call(found->state, SIM_CM_BIND))
        return fake_answer(call, EINVAL);
    if (is_foreign(addr))
        return fake_refused(EADDRNOTAVAIL);
    found->state = SIM_CM_BOUND;
    memcpy(&id->route.addr.src_storage, addr, address_length(addr));
    choose_port(&id->route.addr.src_addr);
    fake_bind_to_device(found);
    return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr,
                      struct sockaddr *dst_addr, int timeout_ms) {
    FAKE_ID_CALL(id);
    call->resolve.addr = copy_address(&call->resolve.addr_copy, dst_addr);
    call->resolve.source = copy_address(&call->resolve.source_copy, src_addr);
    call->resolve.timeout_ms = timeout_ms;
    if (!found || call->failed || address_length(dst_addr) == 0 ||
        sim_check_cm_call(found->state, SIM_CM_RESOLVE_ADDR))
        return fake_answer(call, EINVAL);
    // Linux 7.3, drivers/infiniband/core/cma.c, resolve_prepare_src(): both addresses have the
    // same family, so the family of the source is set.
    if (src_addr && src_addr->sa_family != dst_addr->sa_family)
        return fake_refused(EINVAL);
    if (src_addr && is_foreign(src_addr))
        return fake_refused(EADDRNOTAVAIL);
    const int refusal = src_addr ? source_port_refusal(found, src_addr) : 0;
    if (refusal != 0)
        return fake_refused(refusal);
    bind_source(found, src_addr, dst_addr->sa_family);
    memcpy(&id->route.addr.dst_storage, dst_addr, address_length(dst_addr));
    found->state = SIM_CM_RESOLVING;
    if (found->channel)
        return begin(found, "cut rdma_resolve_addr", RDMA_CM_EVENT_ADDR_RESOLVED,
                     RDMA_CM_EVENT_ADDR_ERROR);
    found->state = SIM_CM_RESOLVED;
    fake_bind_to_device(found);
    return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms) {
    FAKE_ID_CALL(id);
    call->resolve.timeout_ms = timeout_ms;
    if (found && !id->verbs)
        fake_misuse("before the address");
    if (!found || call->failed || sim_check_cm_call(found->state, SIM_CM_RESOLVE_ROUTE))
        return fake_answer(call, EINVAL);
    found->state = SIM_CM_ROUTING;
    if (found->channel)
        return begin(found, "cut rdma_resolve_route", RDMA_CM_EVENT_ROUTE_RESOLVED,
                     RDMA_CM_EVENT_ROUTE_ERROR);
    found->state = SIM_CM_ROUTED;
    return 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
                    size_t optlen) {
    FAKE_ID_CALL(id);
    call->option.level = level;
    call->option.name = optname;
    call->option.length = optlen;
    fake_touch(optval, optlen);
    if (optlen == sizeof(int))
        call->option.value = *(const int *)optval;
    else if (optlen > 0)
        call->option.value = *(const unsigned char *)optval;
    if (!found || call->failed)
        return fake_answer(call, EINVAL);
    int refusal = sim_check_option(level, optname, optlen);
    if (!refusal && optname == RDMA_OPTION_ID_AFONLY)
        refusal = sim_check_cm_call(found->state, SIM_CM_SET_AFONLY);
    return fake_answer(call, refusal);
}

int rdma_listen(struct rdma_cm_id *id, int backlog) {
    FAKE_ID_CALL(id);
    call->backlog = backlog;
    if (!found || call->failed || sim_check_cm_call(found->state, SIM_CM_LISTEN))
        return fake_answer(call, EINVAL);
    found->state = SIM_CM_LISTENING;
    return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr) {
    FAKE_ID_CALL(id);
    fake_touch(&attr->cap, sizeof(attr->cap));
    fake_touch(&attr->comp_mask, sizeof(attr->comp_mask));
    if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
        fake_touch(&attr->send_ops_flags, sizeof(attr->send_ops_flags));
    call->qp = *attr;
    // rdma-core 56, librdmacm/cma.c, rdma_create_qp_ex(): rejects a second QP
    if (!found || call->failed || id->qp)
        return fake_answer(call, EINVAL);
    id->qp = fake_qp_create(attr, id->verbs);
    if (!id->qp)
        return -1;
    id->pd = attr->pd;
    return 0;
}

// rdma-core 56, librdmacm/cma.c, rdma_destroy_qp(): ignores the result of ibv_destroy_qp().
void rdma_destroy_qp(struct rdma_cm_id *id) {
    FAKE_LOCKED;
    fake_note(__func__, id);
    struct fake_qp *qp = fake_find(FAKE_ID, id) ? fake_find(FAKE_QP, id->qp) : NULL;
    if (qp) {
        fake_forget_events(&qp->object);
        fake_destroy(qp);
        id->qp = NULL;
    }
}

// ---- connecting and disconnecting ----------------------------------------------------------

static void note_data(struct fake_call *call, const void *data, uint8_t length) {
    call->connect.param.private_data_len = length;
    if (length)
        memcpy(call->connect.data, data, length);
}

static int too_long(const struct fake_call *call, enum sim_message message) {
    return sim_check_private_data(fake_profile(), message,
                                  call->connect.param.private_data_len);
}

static int start_connection(struct fake_call *call, struct fake_id *id,
                            const struct rdma_conn_param *param, enum sim_message message) {
    fake_copy(&call->connect.param, param, offsetof(struct rdma_conn_param, srq));
    note_data(call, param->private_data, param->private_data_len);
    if (!id || call->failed || too_long(call, message))
        return fake_answer(call, EINVAL);
    if (!id->channel)
        fake_misuse("blocks on a synchronous CM ID");
    if (!id->id.qp)
        fake_misuse("no QP");
    return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param) {
    FAKE_ID_CALL(id);
    if (found && found->state == SIM_CM_REQ_RECEIVED)
        fake_misuse("on an incoming request");
    if (found && !call->failed && sim_check_cm_call(found->state, SIM_CM_CONNECT))
        return fake_refused(EINVAL);
    const int ret = start_connection(call, found, conn_param, SIM_REQUEST);
    if (ret == 0)
        found->state = SIM_CM_REQ_SENT;
    return ret;
}

// Only a pending request can be accepted or rejected.
static bool is_pending_request(const struct fake_id *id) {
    if (sim_check_cm_call(id->state, SIM_CM_ACCEPT) == 0)
        return true;
    fake_misuse("not a pending incoming request");
    return false;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param) {
    FAKE_ID_CALL(id);
    if (found && !is_pending_request(found) && !call->failed)
        return fake_refused(EINVAL);
    const int ret = start_connection(call, found, conn_param, SIM_REPLY);
    if (ret == 0)
        found->state = SIM_CM_REP_SENT;
    if (ret == 0 && id->qp) // rdma-core 56, librdmacm/cma.c, rdma_accept(): moves the QP to RTS
        fake_qp_connect(id->qp);
    return ret;
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len) {
    FAKE_ID_CALL(id);
    note_data(call, private_data, private_data_len);
    const bool wrong = !found || !is_pending_request(found);
    // Linux 7.3, drivers/infiniband/core/cm.c, cm_send_rej_locked(): checks the length first,
    // and returns EINVAL. After any other failure the library cannot reply again.
    const bool is_refused = too_long(call, SIM_REJECTION) ||
                            (call->failed && call->error == EINVAL && private_data_len > 0);
    if (!wrong && !is_refused)
        found->state = SIM_CM_CLOSED;
    return fake_answer(call, wrong || too_long(call, SIM_REJECTION) ? EINVAL : 0);
}

// rdma-core 56, librdmacm/cma.c, rdma_disconnect(): moves the QP to the error state first.
int rdma_disconnect(struct rdma_cm_id *id) {
    FAKE_ID_CALL(id);
    if (found && !id->qp)
        fake_misuse("no QP");
    if (!found || call->failed)
        return fake_answer(call, EINVAL);
    if (id->qp)
        id->qp->state = IBV_QPS_ERR;
    return fake_answer(call, sim_check_cm_call(found->state, SIM_CM_DISCONNECT));
}

const char *rdma_event_str(enum rdma_cm_event_type event) {
    return sim_cm_event_name((int)event);
}
