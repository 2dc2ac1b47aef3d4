// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// floor.c -- the data calls without a single check, to see what their calling convention costs
//
// The program of calls/rpma.c runs on it. What is left of a call is what nobody can remove: up
// to eight arguments that are handed over, a call through the procedure linkage table, a work
// request filled from the handles, and a frame that cannot be given up before the provider has
// read the request. The other functions do what that program needs and no more.

#include "floor.h"

#include <rdma/rdma_cma.h>

static struct ibv_context *device;
static struct rpma_peer the_peer;
static struct rpma_mr_local the_local;
static struct rpma_mr_remote the_remote;
static struct rpma_conn the_conn;

// One for each connection of the program.
struct rpma_cq {
    struct ibv_cq *queue;
};
static struct rpma_cq cqs[3];
static unsigned connections;

static inline int post(const struct rpma_conn *conn, enum ibv_wr_opcode opcode,
                       struct ibv_sge *sge, const struct rpma_mr_remote *remote, size_t offset,
                       unsigned flags, const void *op_context) {
    struct ibv_send_wr wr, *bad;
    wr.wr_id = (uint64_t)(uintptr_t)op_context;
    wr.next = NULL;
    wr.sg_list = sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = flags;
    if (opcode != IBV_WR_SEND) {
        wr.wr.rdma.remote_addr = remote->addr + offset;
        wr.wr.rdma.rkey = remote->rkey;
    }
    return ibv_post_send(conn->qp, &wr, &bad) == 0 ? 0 : RPMA_E_PROVIDER;
}

int rpma_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
               const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
               const void *op_context) {
    struct ibv_sge sge = slice(src, src_offset, len);
    return post(conn, IBV_WR_RDMA_WRITE, &sge, dst, dst_offset, signaled(flags), op_context);
}

int rpma_read(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t dst_offset,
              const struct rpma_mr_remote *src, size_t src_offset, size_t len, int flags,
              const void *op_context) {
    struct ibv_sge sge = slice(dst, dst_offset, len);
    return post(conn, IBV_WR_RDMA_READ, &sge, src, src_offset, signaled(flags), op_context);
}

int rpma_flush(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
               size_t len, enum rpma_flush_type type, int flags, const void *op_context) {
    (void)len, (void)type;
    struct ibv_sge sge = conn->flush_read;
    return post(conn, IBV_WR_RDMA_READ, &sge, dst, dst_offset, signaled(flags), op_context);
}

int rpma_atomic_write(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t dst_offset,
                      const char src[8], int flags, const void *op_context) {
    struct ibv_sge sge = {(uint64_t)(uintptr_t)src, RPMA_ATOMIC_WRITE_ALIGNMENT, 0};
    return post(conn, IBV_WR_RDMA_WRITE, &sge, dst, dst_offset,
                signaled(flags) | IBV_SEND_INLINE | IBV_SEND_FENCE, op_context);
}

int rpma_send(struct rpma_conn *conn, const struct rpma_mr_local *src, size_t offset,
              size_t len, int flags, const void *op_context) {
    struct ibv_sge sge = slice(src, offset, len);
    return post(conn, IBV_WR_SEND, &sge, NULL, 0, signaled(flags), op_context);
}

int rpma_recv(struct rpma_conn *conn, struct rpma_mr_local *dst, size_t offset, size_t len,
              const void *op_context) {
    struct ibv_sge sge = slice(dst, offset, len);
    struct ibv_recv_wr wr = {(uint64_t)(uintptr_t)op_context, NULL, &sge, 1}, *bad;
    return ibv_post_recv(conn->qp, &wr, &bad) == 0 ? 0 : RPMA_E_PROVIDER;
}

int rpma_cq_get_wc(struct rpma_cq *cq, int num_entries, struct ibv_wc *wc,
                   int *num_entries_got) {
    const int got = ibv_poll_cq(cq->queue, num_entries, wc);
    if (got < 1)
        return RPMA_E_NO_COMPLETION;
    if (num_entries_got != NULL)
        *num_entries_got = got;
    return 0;
}

int rpma_utils_get_ibv_context(const char *addr, enum rpma_util_ibv_context_type type,
                               struct ibv_context **ibv_ctx_ptr) {
    (void)addr, (void)type;
    struct rdma_cm_id *id;
    if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) != 0)
        return RPMA_E_PROVIDER;
    device = *ibv_ctx_ptr = id->verbs;
    return 0;
}

int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr) {
    the_peer.pd = ibv_alloc_pd(ibv_ctx);
    *peer_ptr = &the_peer;
    return 0;
}

int rpma_mr_reg(struct rpma_peer *peer, void *ptr, size_t size, int usage,
                struct rpma_mr_local **mr_ptr) {
    (void)usage;
    const struct ibv_mr *mr = ibv_reg_mr(peer->pd, ptr, size, IBV_ACCESS_LOCAL_WRITE);
    the_local = (struct rpma_mr_local){(uint64_t)(uintptr_t)ptr, mr->lkey};
    the_remote = (struct rpma_mr_remote){the_local.addr, mr->rkey};
    the_conn.flush_read = (struct ibv_sge){the_local.addr, 8, mr->lkey};
    *mr_ptr = &the_local;
    return 0;
}

int rpma_mr_get_descriptor_size(const struct rpma_mr_local *mr, size_t *desc_size) {
    (void)mr;
    *desc_size = 0;
    return 0;
}

int rpma_mr_get_descriptor(const struct rpma_mr_local *mr, void *desc) {
    (void)mr, (void)desc;
    return 0;
}

int rpma_mr_remote_from_descriptor(const void *desc, size_t desc_size,
                                   struct rpma_mr_remote **mr_ptr) {
    (void)desc, (void)desc_size;
    *mr_ptr = &the_remote;
    return 0;
}

int rpma_conn_req_new(struct rpma_peer *peer, const char *addr, const char *port,
                      const struct rpma_conn_cfg *cfg, struct rpma_conn_req **req_ptr) {
    (void)addr, (void)port;
    struct rdma_cm_id *id;
    struct ibv_cq *queue = ibv_create_cq(device, (int)cfg->cq_size, NULL, NULL, 0);
    cqs[connections++].queue = queue;
    struct ibv_qp_init_attr_ex attributes = {
        .send_cq = queue, .recv_cq = queue, .pd = peer->pd};
    if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) != 0 ||
        rdma_create_qp_ex(id, &attributes) != 0)
        return RPMA_E_PROVIDER;
    the_conn.qp = id->qp;
    *req_ptr = NULL;
    return 0;
}

int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr) {
    static struct rpma_conn_cfg cfg;
    *cfg_ptr = &cfg;
    return 0;
}

int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size) {
    cfg->cq_size = cq_size;
    return 0;
}

int rpma_conn_cfg_delete(struct rpma_conn_cfg **cfg_ptr) {
    *cfg_ptr = NULL;
    return 0;
}

int rpma_conn_req_connect(struct rpma_conn_req **req_ptr,
                          const struct rpma_conn_private_data *pdata,
                          struct rpma_conn **conn_ptr) {
    (void)req_ptr, (void)pdata;
    *conn_ptr = &the_conn;
    return 0;
}

int rpma_conn_next_event(struct rpma_conn *conn, enum rpma_conn_event *event) {
    (void)conn;
    *event = RPMA_CONN_ESTABLISHED;
    return 0;
}

int rpma_conn_get_cq(const struct rpma_conn *conn, struct rpma_cq **cq_ptr) {
    (void)conn;
    *cq_ptr = &cqs[connections - 1];
    return 0;
}

int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr) {
    *pcfg_ptr = NULL;
    return 0;
}

int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr) {
    (void)pcfg_ptr;
    return 0;
}

int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg, bool supported) {
    (void)pcfg, (void)supported;
    return 0;
}

int rpma_conn_apply_remote_peer_cfg(struct rpma_conn *conn, const struct rpma_peer_cfg *pcfg) {
    (void)conn, (void)pcfg;
    return 0;
}
