// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// verbs_setup.c -- queue pairs and memory of the loops over verbs, on the do-nothing provider

#include "verbs_setup.h"

#include <rdma/rdma_cma.h>
#include <stddef.h>

#include "../provider/provider.h"
#include "loops.h"

struct ibv_qp *qp, *full_qp;
#ifdef PROVIDER_NATIVE
struct ibv_qp_ex *qpx;
#endif
struct ibv_cq *cq, *empty_cq;
struct ibv_comp_channel *channel;
struct ibv_mr *local;
uint64_t remote_addr;
uint32_t rkey;

static struct rdma_cm_id *resolve(const char *address) {
    struct rdma_addrinfo *found;
    struct rdma_cm_id *id;
    must(rdma_getaddrinfo(address, "7204", NULL, &found) == 0, "rdma_getaddrinfo");
    must(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
    must(rdma_resolve_addr(id, NULL, found->ai_dst_addr, 0) == 0, "rdma_resolve_addr");
    return id;
}

void take_event_and_arm(unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        struct ibv_cq *ready;
        void *context;
        must(ibv_get_cq_event(channel, &ready, &context) == 0, "ibv_get_cq_event");
        ibv_ack_cq_events(ready, 1);
        must(ibv_req_notify_cq(ready, 0) == 0, "ibv_req_notify_cq");
    }
}

void create_objects(void) {
    static char memory[4096];
    struct rdma_cm_id *id = resolve("127.0.0.1");
    struct ibv_pd *pd = ibv_alloc_pd(id->verbs);
    channel = ibv_create_comp_channel(id->verbs);
    cq = ibv_create_cq(id->verbs, 1, NULL, channel, 0);
    empty_cq = ibv_create_cq(id->verbs, PROVIDER_EMPTY_CQ, NULL, NULL, 0);
    struct ibv_qp_init_attr_ex attributes = {.send_cq = cq, .recv_cq = cq, .pd = pd};
    must(rdma_create_qp_ex(id, &attributes) == 0, "rdma_create_qp_ex");
    qp = id->qp;
    struct rdma_cm_id *full = resolve("127.0.0.1");
    attributes.cap.max_send_wr = PROVIDER_FULL_SQ;
    must(rdma_create_qp_ex(full, &attributes) == 0, "rdma_create_qp_ex");
    full_qp = full->qp;
    local = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    remote_addr = (uint64_t)(uintptr_t)memory;
    rkey = local->rkey;
#ifdef PROVIDER_NATIVE
    struct rdma_cm_id *native = resolve(PROVIDER_NATIVE_ADDRESS);
    attributes.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attributes.send_ops_flags =
        IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;
    must(rdma_create_qp_ex(native, &attributes) == 0, "rdma_create_qp_ex");
    qpx = ibv_qp_to_qp_ex(native->qp);
#endif
}
