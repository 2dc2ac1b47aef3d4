// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// stub_hns.c -- hns, with the limits of a HIP09 (linux hw/hns/hns_roce_hw_v2.h)

#include "stub.h"

#include <errno.h>
#include <rdma/hns-abi.h>

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->atomic_cap = 1; // IB_ATOMIC_HCA
    device->hw_ver = 0x130; // HIP09
    device->max_sge = device->max_sge_rd = 64;
    device->max_srq_sge = 63;
}

static int complete(struct stub_call *call) {
    struct ib_uverbs_create_cq_resp *const cq = call->response; // also of the extended command
    struct ib_uverbs_create_srq_resp *const srq = call->response;
    switch (call->command) {
    case IB_USER_VERBS_CMD_GET_CONTEXT:
        *(struct hns_roce_ib_alloc_ucontext_resp *)call->out =
            (struct hns_roce_ib_alloc_ucontext_resp){.qp_tab_size = 1 << 15,
                                                     .cqe_size = 64,
                                                     .srq_tab_size = 1 << 15,
                                                     .config = HNS_ROCE_RSP_EXSGE_FLAGS,
                                                     .max_inline_data = 1024};
        return 0;
    case IB_USER_VERBS_CMD_ALLOC_PD:
        ((struct hns_roce_ib_alloc_pd_resp *)call->out)->pdn = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_CQ:
    case STUB_CREATE_CQ_EX:
        *(struct hns_roce_ib_create_cq_resp *)call->out = (struct hns_roce_ib_create_cq_resp){
            .cqn = call->handle, .cap_flags = HNS_ROCE_CQ_FLAG_RECORD_DB};
        cq->cqe--; // hw/hns/hns_roce_cq.c, set_cq_param()
        return 0;
    case IB_USER_VERBS_CMD_CREATE_SRQ:
    case IB_USER_VERBS_CMD_CREATE_XSRQ:
        ((struct hns_roce_ib_create_srq_resp *)call->out)->srqn = call->handle;
        srq->max_wr = stub_power_of_two(srq->max_wr); // hns_roce_srq.c, set_srq_basic_param()
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP:
    case STUB_CREATE_QP_EX:
        *(struct hns_roce_ib_create_qp_resp *)call->out = (struct hns_roce_ib_create_qp_resp){
            .cap_flags = HNS_ROCE_QP_CAP_RQ_RECORD_DB | HNS_ROCE_QP_CAP_SQ_RECORD_DB |
                         HNS_ROCE_QP_CAP_OWNER_DB};
        if (stub_check_qp(call->qp, 1024))
            return EINVAL;
        if (call->qp->max_inline_data > 0) // hns_roce_qp.c, get_max_inline_data()
            call->qp->max_inline_data = stub_power_of_two(call->qp->max_inline_data);
        return 0;
    default:
        return 0;
    }
}

const struct stub_driver stub_hns = {
    .name = "hns", .id = RDMA_DRIVER_HNS, .abi = 1, .describe = describe, .complete = complete};
