// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// stub_qedr.c -- qedr with RoCE (linux hw/qedr/verbs.c)

#include "stub.h"

#include <rdma/qedr-abi.h>

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->atomic_cap = 2; // IB_ATOMIC_GLOB
    device->max_qp_wr = 0x7fff;
    device->max_sge = device->max_sge_rd = device->max_srq_sge = 4;
    device->max_srq = 1 << 15;
}

static int complete(struct stub_call *call) {
    switch (call->command) {
    case IB_USER_VERBS_CMD_GET_CONTEXT:
        *(struct qedr_alloc_ucontext_resp *)call->out =
            (struct qedr_alloc_ucontext_resp){.db_size = 1 << 20,
                                              .max_send_wr = 0x7fff,
                                              .max_recv_wr = 0x7fff,
                                              .max_srq_wr = 0x7fff,
                                              .sges_per_send_wr = 4,
                                              .sges_per_recv_wr = 4,
                                              .sges_per_srq_wr = 4,
                                              .max_cqes = (1 << 22) - 1};
        return 0;
    case IB_USER_VERBS_CMD_ALLOC_PD:
        ((struct qedr_alloc_pd_uresp *)call->out)->pd_id = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_CQ:
        ((struct qedr_create_cq_uresp *)call->out)->icid = (uint16_t)call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_SRQ:
    case IB_USER_VERBS_CMD_CREATE_XSRQ:
        ((struct qedr_create_srq_uresp *)call->out)->srq_id = (uint16_t)call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP:
        *(struct qedr_create_qp_uresp *)call->out =
            (struct qedr_create_qp_uresp){.qp_id = call->handle,
                                          .atomic_supported = 1,
                                          .sq_icid = (uint16_t)call->handle,
                                          .rq_icid = (uint16_t)call->handle};
        return stub_check_qp(call->qp, 256);
    default:
        return 0;
    }
}

const struct stub_driver stub_qedr = {.name = "qedr",
                                      .id = RDMA_DRIVER_QEDR,
                                      .abi = 8,
                                      .describe = describe,
                                      .complete = complete};
