// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// stub_cxgb4.c -- cxgb4, with the limits of a T6 (linux hw/cxgb4/)

#include "stub.h"

#include <errno.h>
#include <rdma/cxgb4-abi.h>

enum { PAGE = 4096, MAX_QUEUE = 16384 };

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->vendor_part_id = 0x6401; // a T6
    device->max_qp = device->max_cq = 1 << 16;
    device->max_mr = 1 << 16;
    device->max_qp_wr = 8191;
    device->max_sge = 4;
    device->max_sge_rd = 1;
    device->max_cqe = 65533;
    device->max_srq = device->max_srq_wr = device->max_srq_sge = 0; // without its firmware
}

static size_t rounded(size_t size) {
    return (size + PAGE - 1) / PAGE * PAGE;
}

// hw/cxgb4/qp.c, c4iw_create_qp(), and t4.h
static int create_qp(struct stub_call *call) {
    enum { SEND_SLOTS = 5, RECEIVE_SLOTS = 2, SLOT = 64, STATUS = 64, INLINE = 280 };
    struct c4iw_create_qp_resp *const made = call->out;
    struct ib_uverbs_create_qp_resp *const qp = call->qp;
    if (qp->max_inline_data > INLINE)
        return EINVAL;
    if (qp->max_send_wr > MAX_QUEUE || qp->max_recv_wr > MAX_QUEUE)
        return E2BIG;
    made->sq_size = qp->max_send_wr + 1 < 8 ? 8 : qp->max_send_wr + 1;
    made->rq_size = qp->max_recv_wr + 1 < 8 ? 8 : qp->max_recv_wr + 1;
    made->sq_memsize = rounded(made->sq_size * SEND_SLOTS * SLOT + STATUS + 128);
    made->rq_memsize = rounded(made->rq_size * RECEIVE_SLOTS * SLOT + STATUS);
    made->sqid = made->rqid = call->handle;
    made->qid_mask = 1;
    uint64_t offset; // other offsets get memory of any size
    stub_new_pages(made->sq_memsize, &offset);
    made->sq_key = offset;
    stub_new_pages(made->rq_memsize, &offset);
    made->rq_key = offset;
    qp->max_send_wr = made->sq_size - 1;
    qp->max_recv_wr = made->rq_size - 1;
    qp->max_inline_data = INLINE;
    return 0;
}

// hw/cxgb4/cq.c, c4iw_create_cq()
static void create_cq(struct stub_call *call) {
    struct ib_uverbs_create_cq_resp *const cq = call->response;
    struct c4iw_create_cq_resp *const made = call->out;
    const uint32_t entries = (cq->cqe + 2 + 15) / 16 * 16;
    made->size = entries * 2 < 64 ? 64 : entries * 2;
    made->memsize = rounded(made->size * 64);
    made->size--;
    made->cqid = call->handle;
    made->qid_mask = 1;
    made->flags = C4IW_64B_CQE;
    uint64_t offset;
    stub_new_pages(made->memsize, &offset);
    made->key = offset;
    cq->cqe = entries - 2;
}

static int complete(struct stub_call *call) {
    switch (call->command) {
    case IB_USER_VERBS_CMD_GET_CONTEXT: {
        struct c4iw_alloc_ucontext_resp *const made = call->out;
        uint64_t offset, *const status = stub_new_pages(PAGE, &offset);
        // struct t4_dev_status_page: the first QP, their number, and those of the CQs
        status[1] = status[3] = 0;
        status[2] = status[4] = 1 << 16;
        made->status_page_key = offset;
        made->status_page_size = PAGE;
        return 0;
    }
    case IB_USER_VERBS_CMD_ALLOC_PD:
        ((struct c4iw_alloc_pd_resp *)call->out)->pdid = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_CQ:
        create_cq(call);
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP:
        return create_qp(call);
    default:
        return 0;
    }
}

const struct stub_driver stub_cxgb4 = {.name = "cxgb4",
                                       .id = RDMA_DRIVER_CXGB4,
                                       .abi = 3,
                                       .is_iwarp = true,
                                       .describe = describe,
                                       .complete = complete};
