/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* explored.h -- a server with two words of memory, and clients that change them, for tests of
 * rdma_sim_explore()
 */

#ifndef EXPLORED_H
#define EXPLORED_H 1

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <rdma-sim.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <string.h>

#define PORT "7204"
#define ACCESS                                                                   \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | \
     IBV_ACCESS_REMOTE_ATOMIC)

/* A program returns the line of its first failure. */
#define MUST(call)           \
    do {                     \
        if (!(call))         \
            return __LINE__; \
    } while (0)

static struct {
    uint64_t lock, counter;
} memory __attribute__((aligned(8))); /* of the server */

static struct {
    uint64_t addr;
    uint32_t rkey;
} offer;

static unsigned clients; /* of the server */

static struct rdma_cm_id *endpoint(int flags) {
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *found;
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
    struct rdma_cm_id *id = NULL;
    if (rdma_getaddrinfo("10.77.0.1", PORT, &hints, &found) == 0) {
        if (rdma_create_ep(&id, found, NULL, &attr) != 0)
            id = NULL;
        rdma_freeaddrinfo(found);
    }
    return id;
}

static int serve(void *argument) {
    struct rdma_cm_id *listener, *ids[2];
    struct rdma_cm_event *event;
    struct ibv_mr *mr;
    (void)argument;
    MUST((listener = endpoint(RAI_PASSIVE)) != NULL && rdma_listen(listener, 2) == 0);
    for (unsigned i = 0; i < clients; i++) {
        MUST(rdma_get_request(listener, &ids[i]) == 0);
        MUST((mr = ibv_reg_mr(ids[i]->pd, &memory, sizeof(memory), ACCESS)) != NULL);
        offer.addr = (uintptr_t)&memory;
        offer.rkey = mr->rkey;
        struct rdma_conn_param param = {.private_data = &offer,
                                        .private_data_len = sizeof(offer),
                                        .responder_resources = 4};
        MUST(rdma_accept(ids[i], &param) == 0);
    }
    for (unsigned i = 0; i < clients; i++)
        MUST(rdma_get_cm_event(ids[i]->channel, &event) == 0 && rdma_ack_cm_event(event) == 0);
    return 0;
}

/* A client: its connection, and the word of its requests. */
struct client {
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    uint64_t word, addr;
    uint32_t rkey;
};

static int connect_client(struct client *client) {
    struct rdma_conn_param param = {.initiator_depth = 4, .retry_count = 7};
    MUST((client->id = endpoint(0)) != NULL);
    MUST((client->mr = ibv_reg_mr(client->id->pd, &client->word, 8, ACCESS)) != NULL);
    MUST(rdma_connect(client->id, &param) == 0);
    memcpy(&offer, client->id->event->param.conn.private_data, sizeof(offer));
    client->addr = offer.addr;
    client->rkey = offer.rkey;
    return 0;
}

/* `place`: of the word of the server, an offset. */
static int execute(struct client *client, enum ibv_wr_opcode opcode, size_t place,
                   uint64_t swap) {
    struct ibv_sge sge = {(uintptr_t)&client->word, 8, client->mr->lkey};
    struct ibv_send_wr *bad,
        wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_wc wc;
    if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.remote_addr = client->addr + place;
        wr.wr.atomic.rkey = client->rkey;
        wr.wr.atomic.swap = swap;
    } else {
        wr.wr.rdma.remote_addr = client->addr + place;
        wr.wr.rdma.rkey = client->rkey;
    }
    MUST(ibv_post_send(client->id->qp, &wr, &bad) == 0);
    MUST(rdma_get_send_comp(client->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    return 0;
}

static int write_word(struct client *client, size_t place, uint64_t value) {
    client->word = value;
    return execute(client, IBV_WR_RDMA_WRITE, place, 0);
}

static int read_word(struct client *client, size_t place) {
    return execute(client, IBV_WR_RDMA_READ, place, 0);
}

#endif /* EXPLORED_H */
