/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* unit_test.c -- a unit test of rdma-sim-test(7): both sides of a connection in one process.
 * A write arrives; after a cut of the link it fails when its retries have ended. */

#include <arpa/inet.h>
#include <errno.h>
#include <rdma-sim.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOSTS 2
#define SECOND UINT64_C(1000000000)

/* Each host has its own event channel. Index 0 is not used. */
static struct rdma_event_channel *channels[HOSTS + 1];

static void must(int is_good, const char *what) {
    if (!is_good) {
        fprintf(stderr, "%s: %s\n", what,
                *rdma_sim_error() ? rdma_sim_error() : strerror(errno));
        exit(EXIT_FAILURE);
    }
}

/* Takes an event that has arrived, and returns its CM ID. */
static struct rdma_cm_id *take(unsigned host, enum rdma_cm_event_type type) {
    struct rdma_cm_event *event;
    must(rdma_sim_use_host(host) == 0, "rdma_sim_use_host");
    must(rdma_get_cm_event(channels[host], &event) == 0, "rdma_get_cm_event");
    struct rdma_cm_id *const id = event->id;
    must(event->event == type, rdma_event_str(event->event));
    must(rdma_ack_cm_event(event) == 0, "rdma_ack_cm_event");
    return id;
}

static void create_qp(struct rdma_cm_id *id) {
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
    must(rdma_create_qp(id, NULL, &attr) == 0, "rdma_create_qp");
}

/* Writes 8 bytes, lets the time pass and returns the status of the completion. */
static enum ibv_wc_status write_bytes(struct rdma_cm_id *id, struct ibv_mr *local,
                                      const struct ibv_mr *remote, uint64_t nanoseconds) {
    struct ibv_wc wc;
    must(rdma_post_write(id, NULL, local->addr, 8, local, IBV_SEND_SIGNALED,
                         (uintptr_t)remote->addr, remote->rkey) == 0,
         "rdma_post_write");
    must(rdma_sim_advance(nanoseconds) == 0, "rdma_sim_advance");
    must(ibv_poll_cq(id->send_cq, 1, &wc) == 1, "ibv_poll_cq");
    return wc.status;
}

int main(void) {
    static char source[8] = "bytes", target[8];
    const struct rdma_sim_options options = {.hosts = HOSTS, .device = "mlx5"};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7204)};
    struct rdma_conn_param param = {.retry_count = 1};
    struct rdma_cm_id *listener, *client;
    must(rdma_sim_start(&options) == 0, "rdma_sim_start");
    for (unsigned host = 1; host <= HOSTS; host++) {
        must(rdma_sim_use_host(host) == 0, "rdma_sim_use_host");
        channels[host] = rdma_create_event_channel();
        must(channels[host] != NULL, "rdma_create_event_channel");
    }

    /* A server on host 1, and a client on host 2. */
    must(rdma_sim_use_host(1) == 0, "rdma_sim_use_host");
    must(rdma_create_id(channels[1], &listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
    must(rdma_bind_addr(listener, (struct sockaddr *)&address) == 0, "rdma_bind_addr");
    must(rdma_listen(listener, 1) == 0, "rdma_listen");
    must(rdma_sim_use_host(2) == 0, "rdma_sim_use_host");
    must(rdma_create_id(channels[2], &client, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
    must(inet_pton(AF_INET, "10.77.0.1", &address.sin_addr) == 1, "inet_pton");
    must(rdma_resolve_addr(client, NULL, (struct sockaddr *)&address, 2000) == 0,
         "rdma_resolve_addr");
    take(2, RDMA_CM_EVENT_ADDR_RESOLVED);
    must(rdma_resolve_route(client, 2000) == 0, "rdma_resolve_route");
    take(2, RDMA_CM_EVENT_ROUTE_RESOLVED);
    create_qp(client);
    must(rdma_connect(client, &param) == 0, "rdma_connect");
    struct rdma_cm_id *const server = take(1, RDMA_CM_EVENT_CONNECT_REQUEST);
    create_qp(server);
    must(rdma_accept(server, &param) == 0, "rdma_accept");
    struct ibv_mr *const remote = rdma_reg_write(server, target, sizeof(target));
    must(remote != NULL, "rdma_reg_write");
    take(2, RDMA_CM_EVENT_ESTABLISHED);
    take(1, RDMA_CM_EVENT_ESTABLISHED);

    /* The test itself. */
    must(rdma_sim_use_host(2) == 0, "rdma_sim_use_host");
    struct ibv_mr *const local = rdma_reg_msgs(client, source, sizeof(source));
    must(local != NULL, "rdma_reg_msgs");
    must(write_bytes(client, local, remote, 0) == IBV_WC_SUCCESS, "the first write");
    must(memcmp(target, source, sizeof(source)) == 0, "the target has the bytes");
    must(rdma_sim_fault("cut host1 host2") == 0, "rdma_sim_fault");
    must(write_bytes(client, local, remote, 60 * SECOND) == IBV_WC_RETRY_EXC_ERR,
         "the write over the cut link");

    must(rdma_dereg_mr(local) == 0, "rdma_dereg_mr");
    rdma_destroy_ep(client);
    rdma_destroy_event_channel(channels[2]);
    must(rdma_sim_use_host(1) == 0, "rdma_sim_use_host");
    must(rdma_dereg_mr(remote) == 0, "rdma_dereg_mr");
    rdma_destroy_ep(server);
    rdma_destroy_ep(listener);
    rdma_destroy_event_channel(channels[1]);
    must(rdma_sim_end() == 0, "rdma_sim_end");
    puts("passed");
    return EXIT_SUCCESS;
}
