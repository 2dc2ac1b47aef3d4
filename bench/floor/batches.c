// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batches.c -- batches without a single check: an array of requests that are linked beforehand

#include "floor.h"

#include <stddef.h>

enum { MOST_REQUESTS = 128 };

struct rpma_batch {
    struct ibv_qp *qp;
    struct ibv_send_wr *free, *last;
    struct ibv_sge flush_read;
    struct ibv_send_wr list[MOST_REQUESTS];
    struct ibv_sge sges[MOST_REQUESTS];
};
static struct rpma_batch the_batch;

int rpma_batch_new(struct rpma_conn *conn, uint32_t max_ops, struct rpma_batch **batch_ptr) {
    if (max_ops > MOST_REQUESTS)
        return RPMA_E_NOMEM;
    the_batch.qp = conn->qp;
    the_batch.flush_read = conn->flush_read;
    for (size_t i = 0; i < MOST_REQUESTS; i++)
        the_batch.list[i] =
            (struct ibv_send_wr){.next = &the_batch.list[i + 1], .sg_list = &the_batch.sges[i]};
    *batch_ptr = &the_batch;
    return rpma_batch_reset(&the_batch);
}

int rpma_batch_delete(struct rpma_batch **batch_ptr) {
    *batch_ptr = NULL;
    return 0;
}

int rpma_batch_reset(struct rpma_batch *batch) {
    batch->free = batch->list;
    return 0;
}

static inline int add(struct rpma_batch *batch, enum ibv_wr_opcode opcode, struct ibv_sge sge,
                      const struct rpma_mr_remote *remote, size_t offset, unsigned flags,
                      const void *op_context) {
    struct ibv_send_wr *wr = batch->free;
    wr->sg_list[0] = sge;
    wr->wr_id = (uint64_t)(uintptr_t)op_context;
    wr->num_sge = 1;
    wr->opcode = opcode;
    wr->send_flags = flags;
    wr->wr.rdma.remote_addr = remote->addr + offset;
    wr->wr.rdma.rkey = remote->rkey;
    batch->last = wr;
    batch->free = wr + 1;
    return 0;
}

int rpma_batch_write(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
                     const struct rpma_mr_local *src, size_t src_offset, size_t len, int flags,
                     const void *op_context) {
    return add(batch, IBV_WR_RDMA_WRITE, slice(src, src_offset, len), dst, dst_offset,
               signaled(flags), op_context);
}

int rpma_batch_flush(struct rpma_batch *batch, struct rpma_mr_remote *dst, size_t dst_offset,
                     size_t len, enum rpma_flush_type type, int flags, const void *op_context) {
    (void)len, (void)type;
    return add(batch, IBV_WR_RDMA_READ, batch->flush_read, dst, dst_offset, signaled(flags),
               op_context);
}

int rpma_batch_post(struct rpma_batch *batch, uint32_t *posted) {
    (void)posted;
    struct ibv_send_wr *bad;
    batch->last->next = NULL;
    const int result = ibv_post_send(batch->qp, batch->list, &bad);
    batch->last->next = batch->free;
    return result == 0 ? 0 : RPMA_E_PROVIDER;
}
