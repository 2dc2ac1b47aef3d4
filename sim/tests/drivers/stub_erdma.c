// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub_erdma.c -- erdma (linux hw/erdma/erdma_verbs.c and erdma_verbs.h)

#include "stub.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/erdma-abi.h>

enum { MAX_WR = 8192 };

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->max_qp_wr = MAX_WR;
    device->max_sge = 1; // core/uverbs_cmd.c reports the lower limit, that of a receive
    device->max_sge_rd = 1;
    device->max_srq = device->max_srq_wr = device->max_srq_sge = 0;
}

static uint32_t *cqes;        // of the last CQ
static size_t produced;       // entries of it
static const uint64_t *sends; // of the last QP
static uint32_t qpn;

enum { BLOCKS = 4, BLOCK = 32, PAGE = 4096 }; // of a send

// The first block of a send: rdma-core providers/erdma/erdma_hw.h, ERDMA_SQE_HDR_WQEBB_CNT_MASK
static uint32_t block_of(uint32_t index) {
    uint32_t block = 0;
    for (; index > 0; index--)
        block += (uint32_t)(le64toh(sends[block * BLOCK / sizeof(*sends)]) >> 52 & 7) + 1;
    return block;
}

// enum erdma_opcode
static uint32_t opcode_of(const struct stub_completion *completion) {
    switch (completion->opcode) {
    case IBV_WC_RDMA_WRITE:
        return completion->has_imm ? 9 : 0;
    case IBV_WC_RDMA_READ:
        return 1;
    case IBV_WC_SEND:
        return completion->has_imm ? 3 : 2;
    case IBV_WC_RECV:
        return completion->has_imm ? 12 : 4;
    case IBV_WC_RECV_RDMA_WITH_IMM:
        return 5;
    default:
        return 7; // ERDMA_OP_REQ_ERR
    }
}

// enum erdma_wc_status. What the other side refuses ends the connection, which flushes all
// requests: no code is for it.
static uint32_t syndrome_of(const struct stub_completion *completion) {
    switch (completion->status) {
    case IBV_WC_SUCCESS:
        return 0;
    case IBV_WC_LOC_LEN_ERR:
        return 4;
    case IBV_WC_LOC_PROT_ERR: // an unknown key
        return completion->queue == STUB_SENDS ? 10 : 3;
    case IBV_WC_RETRY_EXC_ERR:
        return 16;
    default:
        return 15;
    }
}

// struct erdma_cqe, with the owner bit of the first lap
static void complete_one(const struct stub_completion *completion) {
    enum { WORDS = 8, STATE = 0, INDEX, QPN, BYTES = 4, OPCODE = 16, OF_RECEIVE = 1 << 8 };
    const bool is_send = completion->queue == STUB_SENDS;
    uint32_t *const cqe = cqes + produced++ * WORDS;
    cqe[INDEX] = htobe32(is_send ? block_of(completion->index) : completion->index);
    cqe[QPN] = htobe32(qpn);
    cqe[BYTES] = htobe32(completion->length);
    cqe[STATE] = htobe32(1U << 31 | opcode_of(completion) << OPCODE |
                         (is_send ? 0 : OF_RECEIVE) | syndrome_of(completion));
}

static int create_qp(struct stub_call *call) {
    struct erdma_uresp_create_qp *const made = call->out;
    const struct ib_uverbs_create_qp_resp *const qp = call->qp;
    if (qp->max_send_wr == 0 || qp->max_send_wr > MAX_WR || qp->max_recv_wr == 0 ||
        qp->max_recv_wr > MAX_WR || qp->max_send_sge > 6 || qp->max_recv_sge > 1 ||
        qp->max_inline_data > 96)
        return EINVAL;
    sends = (void *)(uintptr_t)((const struct erdma_ureq_create_qp *)call->in)->qbuf_va;
    made->qp_id = qpn = call->handle;
    made->num_sqe = stub_power_of_two(qp->max_send_wr * BLOCKS);
    made->num_rqe = stub_power_of_two(qp->max_recv_wr);
    made->rq_offset = (made->num_sqe * BLOCK + PAGE - 1) / PAGE * PAGE;
    return 0;
}

static int complete(struct stub_call *call) {
    switch (call->command) {
    case IB_USER_VERBS_CMD_CREATE_CQ:
        cqes = (void *)(uintptr_t)((const struct erdma_ureq_create_cq *)call->in)->qbuf_va;
        produced = 0;
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
                                       .complete = complete,
                                       .complete_one = complete_one};
