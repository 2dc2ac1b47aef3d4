// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub_hns.c -- hns, with the limits of a HIP09 (linux hw/hns/hns_roce_hw_v2.h)

#include "stub.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/hns-abi.h>

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->atomic_cap = 1; // IB_ATOMIC_HCA
    device->hw_ver = 0x130; // HIP09
    device->max_sge = device->max_sge_rd = 64;
    device->max_srq_sge = 63;
}

static uint32_t *cqes;  // of the last CQ
static size_t produced; // entries of it
static uint32_t qpn;    // of the last QP

// rdma-core providers/hns/hns_roce_u_hw_v2.h, HNS_ROCE_SQ_OP_* and HNS_ROCE_RECV_OP_*
static uint32_t opcode_of(const struct stub_completion *completion) {
    switch (completion->opcode) {
    case IBV_WC_SEND:
        return completion->has_imm ? 2 : 0;
    case IBV_WC_RDMA_WRITE:
        return completion->has_imm ? 4 : 3;
    case IBV_WC_RDMA_READ:
        return 5;
    case IBV_WC_RECV_RDMA_WITH_IMM:
        return 0;
    case IBV_WC_RECV:
        return completion->has_imm ? 2 : 1;
    default:
        return 0x1f;
    }
}

// struct hns_roce_v2_cqe, with the owner bit of the first lap. A failed one has the opcode of
// its request (linux hw/hns/hns_roce_hw_v2.c, fill_send_wc()).
static void complete_one(const struct stub_completion *completion) {
    enum { WORDS = 16, STATE = 0, QPN = 3, BYTES, IS_RECEIVE = 1 << 6, OWNER = 1 << 7 };
    enum { STATUS = 8, INDEX = 16, SUB_STATUS = 24, BITS_24 = 0xffffff };
    uint32_t *const cqe = cqes + produced++ * WORDS;
    const uint32_t status = stub_syndrome(completion->status);
    cqe[BYTES] = htole32(completion->length);
    cqe[QPN] = htole32((qpn & BITS_24) | (status ? 0x88U << SUB_STATUS : 0));
    cqe[STATE] =
        htole32(opcode_of(completion) | OWNER | status << STATUS | completion->index << INDEX |
                (completion->queue == STUB_SENDS ? 0 : IS_RECEIVE));
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
        cqes = (void *)(uintptr_t)((const struct hns_roce_ib_create_cq *)call->in)->buf_addr;
        produced = 0;
        cq->cqe--; // hw/hns/hns_roce_cq.c, set_cq_param()
        return 0;
    case IB_USER_VERBS_CMD_CREATE_SRQ:
    case IB_USER_VERBS_CMD_CREATE_XSRQ:
        ((struct hns_roce_ib_create_srq_resp *)call->out)->srqn = call->handle;
        srq->max_wr = stub_power_of_two(srq->max_wr); // hns_roce_srq.c, set_srq_basic_param()
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP:
    case STUB_CREATE_QP_EX:
        qpn = call->handle;
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

const struct stub_driver stub_hns = {.name = "hns",
                                     .id = RDMA_DRIVER_HNS,
                                     .abi = 1,
                                     .describe = describe,
                                     .complete = complete,
                                     .complete_one = complete_one};
