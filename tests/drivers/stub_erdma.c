// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// stub_erdma.c -- erdma (linux hw/erdma/erdma_verbs.c and erdma_verbs.h)

#include "stub.h"

#include <errno.h>
#include <rdma/erdma-abi.h>

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->max_qp_wr = 8192;
    device->max_sge = 6;
    device->max_sge_rd = 1;
    device->max_srq = device->max_srq_wr = device->max_srq_sge = 0;
}

static int create_qp(struct stub_call *call) {
    enum { BLOCKS = 4, BLOCK = 32, PAGE = 4096 }; // of a send
    struct erdma_uresp_create_qp *const made = call->out;
    const struct ib_uverbs_create_qp_resp *const qp = call->qp;
    if (stub_check_qp(qp, 96) || qp->max_send_wr == 0 || qp->max_recv_wr == 0 ||
        qp->max_recv_sge > 1)
        return EINVAL;
    made->qp_id = call->handle;
    made->num_sqe = stub_power_of_two(qp->max_send_wr * BLOCKS);
    made->num_rqe = stub_power_of_two(qp->max_recv_wr);
    made->rq_offset = (made->num_sqe * BLOCK + PAGE - 1) / PAGE * PAGE;
    return 0;
}

static int complete(struct stub_call *call) {
    switch (call->command) {
    case IB_USER_VERBS_CMD_CREATE_CQ:
        *(struct erdma_uresp_create_cq *)call->out = (struct erdma_uresp_create_cq){
            .cq_id = call->handle,
            .num_cqe = ((struct ib_uverbs_create_cq_resp *)call->response)->cqe};
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP:
        return create_qp(call);
    default:
        return 0;
    }
}

const struct stub_driver stub_erdma = {.name = "erdma",
                                       .id = RDMA_DRIVER_ERDMA,
                                       .abi = 1,
                                       .is_iwarp = true,
                                       .describe = describe,
                                       .complete = complete};
