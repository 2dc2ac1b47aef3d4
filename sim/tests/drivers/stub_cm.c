// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub_cm.c -- the kernel's side of librdmacm (linux core/ucma.c): every address belongs to the
// device, and every connect succeeds. librdmacm creates the QPs on the driver, and moves them
// through their states.

#include "stub.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/rdma_user_cm.h>

enum { MAX_IDS = 256, MAX_EVENTS = 64 };
enum { CONNECT_RESPONSE = 5, ESTABLISHED = 9, DISCONNECTED = 10 }; // RDMA_CM_EVENT_*

static struct id { // a CM ID, which this index of the array names
    uint64_t uid;
    int channel;
    uint32_t qp;
    bool has_device;
    struct __kernel_sockaddr_storage source, destination;
} ids[MAX_IDS];
static uint32_t id_count;

static struct event { uint32_t id, type; } events[MAX_EVENTS];
static size_t event_count;

static void add_event(uint32_t id, uint32_t type) {
    if (event_count < MAX_EVENTS)
        events[event_count++] = (struct event){id, type};
}

// Takes the first event of the channel.
static int get_event(int channel, struct rdma_ucm_event_resp *made) {
    for (size_t i = 0; i < event_count; i++) {
        const struct event event = events[i];
        if (ids[event.id].channel != channel)
            continue;
        memmove(&events[i], &events[i + 1], (--event_count - i) * sizeof(events[0]));
        made->uid = ids[event.id].uid;
        made->id = event.id;
        made->event = event.type;
        made->param.conn.responder_resources = made->param.conn.initiator_depth = 1;
        return 0;
    }
    return EAGAIN;
}

static void drop_events(uint32_t id) {
    size_t left = 0;
    for (size_t i = 0; i < event_count; i++)
        if (events[i].id != id)
            events[left++] = events[i];
    event_count = left;
}

static void query(const struct rdma_ucm_query *request, void *response) {
    const struct id *const id = &ids[request->id];
    struct rdma_ucm_query_addr_resp *const made = response;
    if (request->option == RDMA_USER_CM_QUERY_PATH) {
        ((struct rdma_ucm_query_path_resp *)response)->num_paths = 0;
        return;
    }
    *made = (struct rdma_ucm_query_addr_resp){.port_num = 1,
                                              .pkey = 0xffff,
                                              .src_addr = id->source,
                                              .dst_addr = id->destination,
                                              .src_size = sizeof(made->src_addr),
                                              .dst_size = sizeof(made->dst_addr),
                                              .ibdev_index = UINT32_MAX};
    if (id->has_device)
        made->node_guid = htobe64(STUB_GUID);
}

// core/cma.c, rdma_init_qp_attr(), with the values of ib_uverbs_qp_attr of RoCE.
static void init_qp_attr(uint32_t state, struct ib_uverbs_qp_attr *made) {
    *made = (struct ib_uverbs_qp_attr){.qp_state = state,
                                       .path_mtu = IBV_MTU_1024,
                                       .dest_qp_num = 0xfffffe,
                                       .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
                                                          IBV_ACCESS_REMOTE_READ |
                                                          IBV_ACCESS_REMOTE_ATOMIC,
                                       .ah_attr = {.is_global = 1, .port_num = 1},
                                       .max_rd_atomic = 1,
                                       .max_dest_rd_atomic = 1,
                                       .min_rnr_timer = 12,
                                       .port_num = 1,
                                       .retry_cnt = 7,
                                       .rnr_retry = 7};
    made->qp_attr_mask = IBV_QP_STATE;
    if (state == IBV_QPS_INIT)
        made->qp_attr_mask |= IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    else if (state == IBV_QPS_RTR)
        made->qp_attr_mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                              IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    else
        made->qp_attr_mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
}

static int create_id(int channel, const struct rdma_ucm_create_id *request,
                     struct rdma_ucm_create_id_resp *made) {
    if (id_count == MAX_IDS)
        return ENOMEM;
    ids[id_count] = (struct id){.uid = request->uid, .channel = channel};
    made->id = id_count++;
    return 0;
}

// librdmacm binds an address of AF_IB to find out whether the kernel supports these.
static void bind_addr(const struct rdma_ucm_bind *request) {
    ids[request->id].source = request->addr;
    ids[request->id].has_device = request->addr.ss_family != AF_IB;
}

static void resolve_addr(const struct rdma_ucm_resolve_addr *request) {
    enum { ADDR_RESOLVED = 0 };
    ids[request->id].has_device = true;
    ids[request->id].destination = request->dst_addr;
    add_event(request->id, ADDR_RESOLVED);
}

// On iWARP the kernel alone moves the QP.
static void connect_id(const struct rdma_ucm_connect *request, bool is_iwarp) {
    ids[request->id].qp = request->conn_param.qp_num;
    add_event(request->id, is_iwarp ? ESTABLISHED : CONNECT_RESPONSE);
    if (is_iwarp)
        stub_set_qp_state(request->conn_param.qp_num, IBV_QPS_RTS);
}

static void disconnect_id(uint32_t id, bool is_iwarp) {
    add_event(id, DISCONNECTED);
    if (is_iwarp)
        stub_set_qp_state(ids[id].qp, IBV_QPS_ERR);
}

// Each command that has a response begins with its address, but for creating an ID.
static void *response_of(const void *request) {
    return (void *)(uintptr_t)(*(const uint64_t *)request);
}

int stub_execute_cm(int channel, const void *command, bool is_iwarp) {
    enum { ROUTE_RESOLVED = 2 };
    const struct rdma_ucm_cmd_hdr *const header = command;
    const void *const request = header + 1;
    switch (header->cmd) {
    case RDMA_USER_CM_CMD_CREATE_ID: {
        const struct rdma_ucm_create_id *const create = request;
        return create_id(channel, create, (void *)(uintptr_t)create->response);
    }
    case RDMA_USER_CM_CMD_DESTROY_ID:
        drop_events(((const struct rdma_ucm_destroy_id *)request)->id);
        memset(response_of(request), 0, sizeof(struct rdma_ucm_destroy_id_resp));
        return 0;
    case RDMA_USER_CM_CMD_RESOLVE_ADDR:
        resolve_addr(request);
        return 0;
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
        add_event(((const struct rdma_ucm_resolve_route *)request)->id, ROUTE_RESOLVED);
        return 0;
    case RDMA_USER_CM_CMD_QUERY:
        query(request, response_of(request));
        return 0;
    case RDMA_USER_CM_CMD_INIT_QP_ATTR:
        init_qp_attr(((const struct rdma_ucm_init_qp_attr *)request)->qp_state,
                     response_of(request));
        return 0;
    case RDMA_USER_CM_CMD_CONNECT:
        connect_id(request, is_iwarp);
        return 0;
    case RDMA_USER_CM_CMD_DISCONNECT:
        disconnect_id(((const struct rdma_ucm_disconnect *)request)->id, is_iwarp);
        return 0;
    case RDMA_USER_CM_CMD_MIGRATE_ID:
        ids[((const struct rdma_ucm_migrate_id *)request)->id].channel = channel;
        memset(response_of(request), 0, sizeof(struct rdma_ucm_migrate_resp));
        return 0;
    case RDMA_USER_CM_CMD_GET_EVENT:
        memset(response_of(request), 0, header->out);
        return get_event(channel, response_of(request));
    case RDMA_USER_CM_CMD_BIND:
        bind_addr(request);
        return 0;
    case RDMA_USER_CM_CMD_ACCEPT:
    case RDMA_USER_CM_CMD_SET_OPTION:
        return 0;
    default:
        return ENOSYS;
    }
}
