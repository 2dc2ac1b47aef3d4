// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lists.c -- see lists.h

#include "lists.h"

struct rpma_mr_local *list_regions[3];
static unsigned char other_memory[2][256];

void list_fixture_new(bool with_srq, uint32_t max_sge) {
    const struct shape shape = {.srq = with_srq, .max_sge = max_sge};
    fixture_peer(&w);
    fixture_cfg(&w, &shape);
    MUST(rpma_conn_cfg_set_rq_size(w.h.cfg, 100)); // the fakes never consume a receive
    MUST(rpma_conn_cfg_set_sq_size(w.h.cfg, 1000));
    MUST(rpma_conn_req_new(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, w.h.cfg, &w.h.req));
    fixture_connect(&w, &shape);
    MUST(rpma_conn_req_new(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, w.h.cfg, &w.h.req));
    list_regions[0] = w.h.mr;
    for (int i = 0; i < 2; i++)
        MUST(rpma_mr_reg(w.h.peer, other_memory[i], sizeof(other_memory[i]),
                         FIXTURE_EVERY_USAGE, &list_regions[1 + i]));
}

void list_fixture_delete(void) {
    MUST(rpma_mr_dereg(&list_regions[1]));
    MUST(rpma_mr_dereg(&list_regions[2]));
    fixture_delete(&w);
}

static int receive(const struct rpma_receive *receives, uint32_t count, uint32_t *posted) {
    return rpma_recv_many(w.h.conn, receives, count, posted);
}
static int receive_by_request(const struct rpma_receive *receives, uint32_t count,
                              uint32_t *posted) {
    return rpma_conn_req_recv_many(w.h.req, receives, count, posted);
}
static int receive_by_srq(const struct rpma_receive *receives, uint32_t count,
                          uint32_t *posted) {
    return rpma_srq_recv_many(w.h.srq, receives, count, posted);
}

#define SENDS NULL, "rpma_post", "ibv_post_send", "ibv_post_send()", "work"
#define RECEIVES "ibv_post_recv", "ibv_post_recv()", "receives"
static const struct list_function functions[] = {
    {RPMA_WORK_READ, SENDS, .remote = true},
    {RPMA_WORK_WRITE, SENDS, .remote = true},
    {RPMA_WORK_WRITE_WITH_IMM, SENDS, .remote = true},
    {RPMA_WORK_SEND, SENDS},
    {RPMA_WORK_SEND_WITH_IMM, SENDS},
    {0, receive, "rpma_recv_many", RECEIVES},
    {0, receive_by_request, "rpma_conn_req_recv_many", RECEIVES},
    {0, receive_by_srq, "rpma_srq_recv_many", "ibv_post_srq_recv", "ibv_post_srq_recv()",
     "receives", .srq = true},
};

static void for_each_from(size_t i, void (*what)(const struct list_function *f)) {
    for (; i < LENGTH(functions); i++) {
        fake_reset();
        list_fixture_new(functions[i].srq, LIST_MAX);
        what(&functions[i]);
        list_fixture_delete();
    }
}

void list_for_each(void (*what)(const struct list_function *f)) {
    for_each_from(0, what);
}

void list_for_each_receive(void (*what)(const struct list_function *f)) {
    for_each_from(LENGTH(functions) - 3, what);
}

int list_run(const struct list_function *f, const struct rpma_sge *sgl, uint32_t nsge) {
    const struct rpma_sge unread = {NULL, 1, SIZE_MAX}, local = nsge ? unread : *sgl;
    const struct rpma_sge *const list = nsge ? sgl : NULL;
    const struct rpma_work work = {.type = f->kind,
                                   .remote = f->remote ? w.h.remote : NULL,
                                   .remote_offset = 8,
                                   .local = local,
                                   .sgl = list,
                                   .nsge = nsge,
                                   .flags = RPMA_F_COMPLETION_ALWAYS,
                                   .op_context = LIST_CONTEXT};
    const struct rpma_receive receive = {local, list, nsge, 0, LIST_CONTEXT};
    return f->kind ? rpma_post(w.h.conn, &work, 1, NULL) : f->receive(&receive, 1, NULL);
}

struct rpma_sge list_sge(int i) {
    return (struct rpma_sge){list_regions[i % 3], 10 + (size_t)i, 20 + (size_t)i};
}
