// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// stub_bnxt_re.c -- bnxt_re, with the limits of a BCM57508 (linux hw/bnxt_re/qplib_sp.c)

#include "stub.h"

#include <errno.h>
#include <rdma/bnxt_re-abi.h>

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->atomic_cap = 2; // IB_ATOMIC_GLOB
    device->max_qp_wr = 65535;
    device->max_sge = device->max_sge_rd = device->max_srq_sge = 6;
    device->max_cqe = (1 << 17) - 1;
    device->max_srq_wr = 65535;
}

static int complete(struct stub_call *call) {
    struct ib_uverbs_create_cq_resp *const cq = call->response;
    switch (call->command) {
    case IB_USER_VERBS_CMD_GET_CONTEXT:
        *(struct bnxt_re_uctx_resp *)call->out = (struct bnxt_re_uctx_resp){
            .max_qp = 1 << 16,
            .pg_size = 4096,
            .cqe_sz = 32,
            .max_cqd = (1 << 17) - 1,
            .comp_mask = BNXT_RE_UCNTX_CMASK_HAVE_CCTX | BNXT_RE_UCNTX_CMASK_HAVE_MODE,
            .chip_id0 = 0x1750,
            .mode = BNXT_QPLIB_WQE_MODE_STATIC};
        return 0;
    case IB_USER_VERBS_CMD_ALLOC_PD:
        ((struct bnxt_re_pd_resp *)call->out)->pdid = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_CQ:
        ((struct bnxt_re_cq_resp *)call->out)->cqid = call->handle;
        cq->cqe = stub_power_of_two(cq->cqe + 1); // hw/bnxt_re/ib_verbs.c, bnxt_re_create_cq()
        return 0;
    case IB_USER_VERBS_CMD_CREATE_SRQ:
        ((struct bnxt_re_srq_resp *)call->out)->srqid = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP:
        ((struct bnxt_re_qp_resp *)call->out)->qpid = call->handle;
        if (stub_check_qp(call->qp, 96))
            return EINVAL;
        if (call->qp->max_inline_data > 0) // bnxt_re_setup_swqe_size(): entries of 128 bytes
            call->qp->max_inline_data = 96;
        return 0;
    default:
        return 0;
    }
}

const struct stub_driver stub_bnxt_re = {.name = "bnxt_re",
                                         .id = RDMA_DRIVER_BNXT_RE,
                                         .abi = 1,
                                         .describe = describe,
                                         .complete = complete};
