// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lists_by_hand.c -- the lists of lists.c in verbs, over a connection of librdmacm

#include "lists.h"

#include <endian.h>
#include <rdma/rdma_cma.h>
#include <string.h>

enum { FLUSH_BYTES = 8 };

static struct rdma_cm_id *id;
static struct ibv_mr *mr;
static uint64_t remote_addr;
static uint32_t rkey;
static struct ibv_send_wr list[MAX_REQUESTS];
static struct ibv_sge sges[MAX_REQUESTS];

static void must_not_fail(int result, const char *call) {
    if (result != 0)
        fail(call);
}

// The server sends the descriptor of its region: address, size and key, little-endian.
static void read_descriptor(const struct rdma_cm_id *connected) {
    const unsigned char *descriptor = connected->event->param.conn.private_data;
    memcpy(&remote_addr, descriptor, sizeof(remote_addr));
    memcpy(&rkey, descriptor + 2 * sizeof(remote_addr), sizeof(rkey));
    remote_addr = le64toh(remote_addr);
    rkey = le32toh(rkey);
}

// librdmacm creates the queues and the completion channel.
void open_by_hand(const char *address, const char *port) {
    static _Alignas(BLOCK) char memory[BLOCK];
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC};
    struct rdma_addrinfo *found;
    struct ibv_qp_init_attr attributes = {.cap = {.max_send_wr = MAX_REQUESTS,
                                                  .max_recv_wr = 1,
                                                  .max_send_sge = 1,
                                                  .max_recv_sge = 1}};
    struct rdma_conn_param param = {
        .responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7};
    must_not_fail(rdma_getaddrinfo(address, port, &hints, &found), "rdma_getaddrinfo");
    must_not_fail(rdma_create_ep(&id, found, NULL, &attributes), "rdma_create_ep");
    rdma_freeaddrinfo(found);
    must_not_fail(ibv_req_notify_cq(id->send_cq, 0), "ibv_req_notify_cq");
    mr = ibv_reg_mr(id->pd, memory, BLOCK, IBV_ACCESS_LOCAL_WRITE);
    must_not_fail(mr == NULL, "ibv_reg_mr");
    must_not_fail(rdma_connect(id, &param), "rdma_connect");
    read_descriptor(id);
}

static void describe(unsigned i, enum ibv_wr_opcode opcode, uint32_t bytes, unsigned flags) {
    sges[i] = (struct ibv_sge){(uint64_t)(uintptr_t)mr->addr, bytes, mr->lkey};
    list[i].wr_id = 0;
    list[i].next = &list[i + 1];
    list[i].sg_list = &sges[i];
    list[i].num_sge = 1;
    list[i].opcode = opcode;
    list[i].send_flags = flags;
    list[i].wr.rdma.remote_addr = remote_addr;
    list[i].wr.rdma.rkey = rkey;
}

void build_by_hand(void) {
    unsigned used = 0;
    for (unsigned n = 0; n < kind.length; n++) {
        const unsigned flags = n + 1 == kind.length ? IBV_SEND_SIGNALED : 0;
        describe(used++, IBV_WR_RDMA_WRITE, kind.bytes, kind.flushes ? 0 : flags);
        if (kind.flushes)
            describe(used++, IBV_WR_RDMA_READ, FLUSH_BYTES, flags);
    }
    list[used - 1].next = NULL;
}

void post_by_hand(void) {
    struct ibv_send_wr *bad;
    must_not_fail(ibv_post_send(id->qp, list, &bad), "ibv_post_send");
}

void post_built_by_hand(void) {
    build_by_hand();
    post_by_hand();
}

void wait_by_hand(void) {
    struct ibv_wc wc;
    int got;
    while ((got = ibv_poll_cq(id->send_cq, 1, &wc)) == 0) {
        struct ibv_cq *ready;
        void *context;
        must_not_fail(ibv_get_cq_event(id->send_cq_channel, &ready, &context),
                      "ibv_get_cq_event");
        ibv_ack_cq_events(ready, 1);
        must_not_fail(ibv_req_notify_cq(ready, 0), "ibv_req_notify_cq");
    }
    if (got != 1 || wc.status != IBV_WC_SUCCESS)
        fail("a list did not complete");
}
