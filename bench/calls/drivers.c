// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// drivers.c -- loops over librpma and by hand, over a user-space driver of rdma-core whose
// kernel's side is a stub (sim/tests/drivers)
//
// The stub executes no request, so each loop has a connection of its own, whose queue holds all
// requests that the loop posts if it runs 0 to 3 times COUNTED long, after one call. A run of
// COUNTED calls posts a multiple of 128 requests, after which irdma clears a part of the queue
// (rdma-core providers/irdma/uk.c, irdma_clr_wqes()).

#include <dlfcn.h>
#include <librpma.h>
#include <stdlib.h>

#include "../../sim/tests/drivers/stub.h"
#include "loops.h"

enum { LENGTH = 16, COUNTED = 40, SENDS = 4000, BYTES = 4096, POLLS = 1 + 6 * COUNTED };

static struct rpma_peer *peer;
static struct rpma_mr_local *local;
static struct rpma_mr_remote *remote;
static uint64_t remote_addr;
static uint32_t key; // of both sides
static char memory[BYTES];

static struct connection {
    struct rpma_conn *conn;
    struct ibv_qp *qp;
    struct rpma_cq *rpma_cq;
    struct ibv_cq *cq;
    struct rpma_batch *batch;
} writes, lists, built, polls, writes_by_hand, lists_by_hand, built_by_hand, polls_by_hand;

static void connect_to_device(struct connection *made) {
    struct rpma_conn_cfg *cfg;
    struct rpma_conn_req *req;
    enum rpma_conn_event event;
    must(rpma_conn_cfg_new(&cfg) == 0, "rpma_conn_cfg_new");
    must(rpma_conn_cfg_set_sq_size(cfg, SENDS) == 0, "rpma_conn_cfg_set_sq_size");
    must(rpma_conn_req_new(peer, "192.168.0.1", "7204", cfg, &req) == 0, "rpma_conn_req_new");
    must(rpma_conn_req_connect(&req, NULL, &made->conn) == 0, "rpma_conn_req_connect");
    must(rpma_conn_next_event(made->conn, &event) == 0 && event == RPMA_CONN_ESTABLISHED,
         "rpma_conn_next_event");
    must(rpma_conn_get_ibv_qp(made->conn, &made->qp) == 0, "rpma_conn_get_ibv_qp");
    must(rpma_conn_get_cq(made->conn, &made->rpma_cq) == 0, "rpma_conn_get_cq");
    must(rpma_batch_new(made->conn, LENGTH, &made->batch) == 0, "rpma_batch_new");
    made->cq = made->qp->send_cq;
    rpma_conn_cfg_delete(&cfg);
}

// ---- the loops -----------------------------------------------------------------------------

static void write_loop(unsigned long times) {
    for (unsigned long i = 0; i < times * LENGTH; i++)
        must(rpma_write(writes.conn, remote, 0, local, 0, TRANSFER_BYTES,
                        RPMA_F_COMPLETION_ALWAYS, NULL) == 0,
             "rpma_write");
}

static inline void fill_request(struct ibv_send_wr *wr, struct ibv_sge *sge,
                                struct ibv_send_wr *next) {
    *sge = (struct ibv_sge){(uintptr_t)memory, TRANSFER_BYTES, key};
    wr->wr_id = 0;
    wr->next = next;
    wr->sg_list = sge;
    wr->num_sge = 1;
    wr->opcode = IBV_WR_RDMA_WRITE;
    wr->send_flags = IBV_SEND_SIGNALED;
    wr->wr.rdma.remote_addr = remote_addr;
    wr->wr.rdma.rkey = key;
}

static void write_by_hand(unsigned long times) {
    for (unsigned long i = 0; i < times * LENGTH; i++) {
        struct ibv_sge sge;
        struct ibv_send_wr wr, *bad;
        fill_request(&wr, &sge, NULL);
        must(ibv_post_send(writes_by_hand.qp, &wr, &bad) == 0, "ibv_post_send");
    }
}

// The struct is cleared once, and its members are set for each operation.
static void add_works(struct rpma_batch *batch) {
    static struct rpma_work work;
    for (int i = 0; i < LENGTH; i++) {
        work.type = RPMA_WORK_WRITE;
        work.flags = RPMA_F_COMPLETION_ALWAYS;
        work.op_context = NULL;
        work.remote = remote;
        work.remote_offset = 0;
        work.local = (struct rpma_sge){.mr = local, .len = TRANSFER_BYTES};
        must(rpma_batch_add(batch, &work) == 0, "rpma_batch_add");
    }
}

static void prepared_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_batch_post(lists.batch, NULL) == 0, "rpma_batch_post");
}

static void built_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        must(rpma_batch_reset(built.batch) == 0, "rpma_batch_reset");
        add_works(built.batch);
        must(rpma_batch_post(built.batch, NULL) == 0, "rpma_batch_post");
    }
}

static struct ibv_send_wr wrs[LENGTH];
static struct ibv_sge sges[LENGTH];

static void fill_list(void) {
    for (int i = 0; i < LENGTH; i++)
        fill_request(&wrs[i], &sges[i], i + 1 < LENGTH ? &wrs[i + 1] : NULL);
}

static void prepared_by_hand(unsigned long times) {
    struct ibv_send_wr *bad;
    for (unsigned long i = 0; i < times; i++)
        must(ibv_post_send(lists_by_hand.qp, wrs, &bad) == 0, "ibv_post_send");
}

static void built_list_by_hand(unsigned long times) {
    struct ibv_send_wr *bad;
    for (unsigned long i = 0; i < times; i++) {
        fill_list();
        must(ibv_post_send(built_by_hand.qp, wrs, &bad) == 0, "ibv_post_send");
    }
}

static void poll_loop(unsigned long times) {
    struct ibv_wc wc;
    for (unsigned long i = 0; i < times; i++)
        must(rpma_cq_get_wc(polls.rpma_cq, 1, &wc, NULL) == 0, "rpma_cq_get_wc");
}

static void poll_by_hand(unsigned long times) {
    struct ibv_wc wc;
    for (unsigned long i = 0; i < times; i++)
        must(ibv_poll_cq(polls_by_hand.cq, 1, &wc) == 1, "ibv_poll_cq");
}

static void poll_empty_loop(unsigned long times) {
    struct ibv_wc wc;
    for (unsigned long i = 0; i < times; i++)
        must(rpma_cq_get_wc(lists.rpma_cq, 1, &wc, NULL) == RPMA_E_NO_COMPLETION,
             "rpma_cq_get_wc");
}

static void poll_empty_by_hand(unsigned long times) {
    struct ibv_wc wc;
    for (unsigned long i = 0; i < times; i++)
        must(ibv_poll_cq(lists_by_hand.cq, 1, &wc) == 0, "ibv_poll_cq");
}

const struct loop loops[] = {
    {"plain_write_16", write_loop},
    {"plain_write_16_by_hand", write_by_hand},
    {"prepared_write_16", prepared_loop},
    {"prepared_write_16_by_hand", prepared_by_hand},
    {"built_write_16", built_loop},
    {"built_write_16_by_hand", built_list_by_hand},
    {"poll_one_1", poll_loop},
    {"poll_one_1_by_hand", poll_by_hand},
    {"poll_none_1", poll_empty_loop},
    {"poll_none_1_by_hand", poll_empty_by_hand},
    {0},
};

// ---- objects -------------------------------------------------------------------------------

static void open_device(void) {
    struct ibv_context *device;
    char descriptor[64];
    size_t size;
    must(rpma_utils_get_ibv_context("192.168.0.1", RPMA_UTIL_IBV_CONTEXT_REMOTE, &device) == 0,
         "rpma_utils_get_ibv_context");
    must(rpma_peer_new(device, &peer) == 0, "rpma_peer_new");
    must(rpma_mr_reg(peer, memory, sizeof(memory), 0xff, &local) == 0, "rpma_mr_reg");
    must(rpma_mr_get_descriptor_size(local, &size) == 0 && size <= sizeof(descriptor),
         "rpma_mr_get_descriptor_size");
    must(rpma_mr_get_descriptor(local, descriptor) == 0, "rpma_mr_get_descriptor");
    must(rpma_mr_remote_from_descriptor(descriptor, size, &remote) == 0,
         "rpma_mr_remote_from_descriptor");
    must(rpma_mr_remote_get_key(remote, &remote_addr, &key) == 0, "rpma_mr_remote_get_key");
}

// Creates a connection with completions, which the stub writes for the last connection.
static void connect_completed(struct connection *made) {
    __typeof__(stub_complete) *complete;
    *(void **)&complete = dlsym(RTLD_DEFAULT, "stub_complete");
    must(complete != NULL, "stub_complete");
    connect_to_device(made);
    for (int i = 0; i < POLLS; i++)
        must(rpma_write(made->conn, remote, 0, local, 0, TRANSFER_BYTES,
                        RPMA_F_COMPLETION_ALWAYS, NULL) == 0,
             "rpma_write");
    for (uint32_t i = 0; i < POLLS; i++)
        must(complete(&(struct stub_completion){.queue = STUB_SENDS,
                                                .index = i,
                                                .opcode = IBV_WC_RDMA_WRITE,
                                                .length = TRANSFER_BYTES}),
             "stub_complete");
}

void create_objects(void) {
    struct connection *const connections[] = {&writes,         &lists,         &built,
                                              &writes_by_hand, &lists_by_hand, &built_by_hand};
    open_device();
    for (size_t i = 0; i < sizeof(connections) / sizeof(connections[0]); i++)
        connect_to_device(connections[i]);
    connect_completed(&polls);
    connect_completed(&polls_by_hand);
    add_works(lists.batch);
    fill_list();
}
