// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lists.c -- see lists.h

#include "lists.h"

struct world list_world;
struct rpma_mr_local *list_regions[3];
static unsigned char other_memory[2][256];
const unsigned char *const list_memories[3] = {list_world.memory, other_memory[0],
                                               other_memory[1]};

void list_world_new(bool with_srq, uint32_t max_sge) {
    const struct shape shape = {.srq = with_srq, .max_sge = max_sge};
    world_peer(&list_world);
    world_cfg(&list_world, &shape);
    MUST(rpma_conn_cfg_set_rq_size(list_world.h.cfg, 100)); // no fake takes a receive away
    MUST(rpma_conn_req_new(list_world.h.peer, WORLD_ADDRESS, WORLD_PORT, list_world.h.cfg,
                           &list_world.h.req));
    world_connect(&list_world, &shape);
    MUST(rpma_conn_req_new(list_world.h.peer, WORLD_ADDRESS, WORLD_PORT, list_world.h.cfg,
                           &list_world.h.req));
    list_regions[0] = list_world.h.mr;
    for (int i = 0; i < 2; i++)
        MUST(rpma_mr_reg(list_world.h.peer, other_memory[i], sizeof(other_memory[i]),
                         WORLD_EVERY_USAGE, &list_regions[1 + i]));
}

void list_world_drop(void) {
    MUST(rpma_mr_dereg(&list_regions[1]));
    MUST(rpma_mr_dereg(&list_regions[2]));
    world_drop(&list_world);
}

static int readv_(const struct rpma_sge *sgl, int nsge) {
    return rpma_readv(list_world.h.conn, sgl, nsge, list_world.h.remote, 8,
                      RPMA_F_COMPLETION_ALWAYS, LIST_CONTEXT);
}
static int writev_(const struct rpma_sge *sgl, int nsge) {
    return rpma_writev(list_world.h.conn, list_world.h.remote, 8, sgl, nsge,
                       RPMA_F_COMPLETION_ALWAYS, LIST_CONTEXT);
}
static int writev_with_imm(const struct rpma_sge *sgl, int nsge) {
    return rpma_writev_with_imm(list_world.h.conn, list_world.h.remote, 8, sgl, nsge,
                                RPMA_F_COMPLETION_ALWAYS, LIST_IMM, LIST_CONTEXT);
}
static int sendv(const struct rpma_sge *sgl, int nsge) {
    return rpma_sendv(list_world.h.conn, sgl, nsge, RPMA_F_COMPLETION_ALWAYS, LIST_CONTEXT);
}
static int sendv_with_imm(const struct rpma_sge *sgl, int nsge) {
    return rpma_sendv_with_imm(list_world.h.conn, sgl, nsge, RPMA_F_COMPLETION_ALWAYS, LIST_IMM,
                               LIST_CONTEXT);
}
static int recvv(const struct rpma_sge *sgl, int nsge) {
    return rpma_recvv(list_world.h.conn, sgl, nsge, LIST_CONTEXT);
}
static int conn_req_recvv(const struct rpma_sge *sgl, int nsge) {
    return rpma_conn_req_recvv(list_world.h.req, sgl, nsge, LIST_CONTEXT);
}
static int srq_recvv(const struct rpma_sge *sgl, int nsge) {
    return rpma_srq_recvv(list_world.h.srq, sgl, nsge, LIST_CONTEXT);
}

static const struct list_function functions[] = {
    {readv_, "rpma_readv", "ibv_post_send", "ibv_post_send()", IBV_WR_RDMA_READ,
     .remote = true},
    {writev_, "rpma_writev", "ibv_post_send", "ibv_post_send()", IBV_WR_RDMA_WRITE,
     .remote = true},
    {writev_with_imm, "rpma_writev_with_imm", "ibv_post_send", "ibv_post_send()",
     IBV_WR_RDMA_WRITE_WITH_IMM, .remote = true, .imm = true},
    {sendv, "rpma_sendv", "ibv_post_send", "ibv_post_send()", IBV_WR_SEND},
    {sendv_with_imm, "rpma_sendv_with_imm", "ibv_post_send", "ibv_post_send()",
     IBV_WR_SEND_WITH_IMM, .imm = true},
    {recvv, "rpma_recvv", "ibv_post_recv", "ibv_post_recv()", -1},
    {conn_req_recvv, "rpma_conn_req_recvv", "ibv_post_recv", "ibv_post_recv()", -1},
    {srq_recvv, "rpma_srq_recvv", "ibv_post_srq_recv", "ibv_post_srq_recv()", -1, .srq = true},
};

void list_for_each(void (*what)(const struct list_function *f)) {
    for (size_t i = 0; i < LENGTH(functions); i++) {
        fake_reset();
        list_world_new(functions[i].srq, LIST_MOST);
        what(&functions[i]);
        list_world_drop();
    }
}

struct rpma_sge list_element(int i) {
    return (struct rpma_sge){list_regions[i % 3], 10 + (size_t)i, 20 + (size_t)i};
}

void list_must(const struct list_function *f, const struct rpma_sge *sgl, int nsge) {
    unit_begin();
    unit_must(f->run(sgl, nsge), f->name, __FILE__, __LINE__);
}
