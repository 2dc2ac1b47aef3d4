/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* explore_test.c -- a test of CMocka that runs its programs in many schedules: rdma-sim-test(7)
 * Two clients increase a counter in the memory of a server. By a read and a write, they lose an
 * update if both read before one of them writes; by a fetch-and-add they do not. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rdma-sim.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS 2
#define PORT "7204"

struct memory {
    uint64_t addr;
    uint32_t rkey;
};

static uint64_t counter; /* of the server */

/* A program returns the line of its first failure. */
#define MUST(call)           \
    do {                     \
        if (!(call))         \
            return __LINE__; \
    } while (0)

static struct rdma_cm_id *endpoint(const char *node, int flags) {
    struct rdma_addrinfo hints = {.ai_flags = flags, .ai_port_space = RDMA_PS_TCP}, *found;
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
    struct rdma_cm_id *id = NULL;
    if (rdma_getaddrinfo(node, PORT, &hints, &found) == 0) {
        if (rdma_create_ep(&id, found, NULL, &attr) != 0)
            id = NULL;
        rdma_freeaddrinfo(found);
    }
    return id;
}

static int server(void *argument) {
    struct rdma_cm_id *listener, *clients[CLIENTS];
    struct ibv_mr *mrs[CLIENTS];
    (void)argument;
    MUST((listener = endpoint("10.77.0.1", RAI_PASSIVE)) != NULL);
    MUST(rdma_listen(listener, CLIENTS) == 0);
    for (int i = 0; i < CLIENTS; i++) {
        MUST(rdma_get_request(listener, &clients[i]) == 0);
        MUST((mrs[i] = ibv_reg_mr(clients[i]->pd, &counter, sizeof(counter),
                                  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)));
        const struct memory memory = {(uintptr_t)&counter, mrs[i]->rkey};
        struct rdma_conn_param param = {.private_data = &memory,
                                        .private_data_len = sizeof(memory),
                                        .responder_resources = 1};
        MUST(rdma_accept(clients[i], &param) == 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        struct rdma_cm_event *event; /* the client disconnects */
        MUST(rdma_get_cm_event(clients[i]->channel, &event) == 0);
        MUST(rdma_ack_cm_event(event) == 0);
        MUST(rdma_dereg_mr(mrs[i]) == 0);
        rdma_destroy_ep(clients[i]);
    }
    rdma_destroy_ep(listener);
    return 0;
}

static int complete(struct rdma_cm_id *id) {
    struct ibv_wc wc;
    MUST(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    return 0;
}

/* `argument`: whether the client uses a fetch-and-add. */
static int client(void *argument) {
    uint64_t value = 0;
    struct rdma_conn_param param = {.initiator_depth = 1, .retry_count = 7};
    struct memory memory;
    struct rdma_cm_id *id;
    struct ibv_mr *mr;
    MUST((id = endpoint("10.77.0.1", 0)) != NULL);
    MUST((mr = rdma_reg_msgs(id, &value, sizeof(value))) != NULL);
    MUST(rdma_connect(id, &param) == 0);
    memcpy(&memory, id->event->param.conn.private_data, sizeof(memory));
    if (*(const int *)argument) {
        struct ibv_sge sge = {(uintptr_t)&value, sizeof(value), mr->lkey};
        struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                       .num_sge = 1,
                                       .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                       .send_flags = IBV_SEND_SIGNALED};
        wr.wr.atomic.remote_addr = memory.addr;
        wr.wr.atomic.rkey = memory.rkey;
        wr.wr.atomic.compare_add = 1;
        MUST(ibv_post_send(id->qp, &wr, &bad) == 0 && complete(id) == 0);
    } else {
        MUST(rdma_post_read(id, NULL, &value, sizeof(value), mr, IBV_SEND_SIGNALED, memory.addr,
                            memory.rkey) == 0 &&
             complete(id) == 0);
        value++;
        MUST(rdma_post_write(id, NULL, &value, sizeof(value), mr, IBV_SEND_SIGNALED,
                             memory.addr, memory.rkey) == 0 &&
             complete(id) == 0);
    }
    MUST(rdma_disconnect(id) == 0);
    MUST(rdma_dereg_mr(mr) == 0);
    rdma_destroy_ep(id);
    return 0;
}

static const char *check(void *argument) {
    (void)argument;
    return counter == CLIENTS ? NULL : "an update of the counter is lost";
}

static int explore(int is_atomic) {
    const struct rdma_sim_program programs[] = {{1, server, NULL, "server"},
                                                {2, client, &is_atomic, NULL},
                                                {3, client, &is_atomic, NULL}};
    const struct rdma_sim_test test = {.options = {.hosts = 3},
                                       .programs = programs,
                                       .program_count = 3,
                                       .check = check,
                                       .schedules = 500};
    return rdma_sim_explore(&test);
}

static void fetch_and_add_loses_no_update(void **state) {
    (void)state;
    if (explore(1) != 0)
        fail_msg("%s", rdma_sim_error());
}

static void read_and_write_lose_an_update(void **state) {
    (void)state;
    assert_int_equal(explore(0), RDMA_SIM_FOUND);
    assert_non_null(strstr(rdma_sim_error(), "an update of the counter is lost"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fetch_and_add_loses_no_update),
        cmocka_unit_test(read_and_write_lose_an_update),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
