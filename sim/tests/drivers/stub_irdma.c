// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub_irdma.c -- irdma, with the limits of an E810 (linux hw/irdma/icrdma_hw.c, user.h)

#include "stub.h"

#include <endian.h>
#include <infiniband/opcode.h>
#include <infiniband/verbs.h>
#include <rdma/irdma-abi.h>

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->max_qp_wr = 4063;
    device->max_sge = device->max_sge_rd = 13;
    device->max_cqe = 1048574;
    device->max_srq = device->max_srq_wr = device->max_srq_sge = 0;
}

static uint64_t *cqes;   // of the last CQ
static size_t produced;  // entries of it that complete_one() has written
static uint64_t context; // of the last QP
static uint64_t qp_id;
static bool has_flushed;

// rdma-core providers/irdma/user.h, enum irdma_flush_opcode, and linux-6.1 hw/irdma/hw.c,
// irdma_set_flush_fields(): too many RNR NAKs have no code of their own
static uint64_t flush_code(uint32_t status) {
    switch (status) {
    case IBV_WC_LOC_PROT_ERR:
        return 2;
    case IBV_WC_REM_ACCESS_ERR:
        return 3;
    case IBV_WC_LOC_LEN_ERR:
        return 6;
    case IBV_WC_REM_INV_REQ_ERR:
        return 10;
    case IBV_WC_RETRY_EXC_ERR:
        return 8;
    default:
        return 1;
    }
}

// user.h, IRDMA_OP_TYPE_*; for receives IBV_OPCODE_*, as uverbs.c, set_ib_wc_op_rq(), requires
static uint64_t opcode_of(const struct stub_completion *completion) {
    switch (completion->opcode) {
    case IBV_WC_RDMA_WRITE:
        return 0;
    case IBV_WC_RDMA_READ:
        return 1;
    case IBV_WC_SEND:
        return 3;
    case IBV_WC_RECV:
        return completion->has_imm ? IBV_OPCODE_SEND_ONLY_WITH_IMMEDIATE : IBV_OPCODE_SEND_ONLY;
    case IBV_WC_RECV_RDMA_WITH_IMM:
        return IBV_OPCODE_RDMA_WRITE_ONLY_WITH_IMMEDIATE;
    default:
        return 63;
    }
}

// rdma-core providers/irdma/uk.c, irdma_uk_cq_poll_cmpl(), with the polarity of the first
// lap: the entry of a flush completes all requests of the queue, the first one with its error.
static void complete_one(const struct stub_completion *completion) {
    enum { WORDS = 4, BYTES = 0, CONTEXT = 1, QP_ID = 2, STATE = 3, FLUSHED = 1 };
    enum { MAJOR = 16, INDEX = 32, EXTENDED = 50, ERROR = 55, OPCODE = 56, OF_SENDS = 62 };
    enum { VALID = 63, HAS_IMM = 62 };
    const uint64_t error =
        (uint64_t)FLUSHED << MAJOR | flush_code(completion->status) | 1ULL << ERROR;
    const bool is_send = completion->queue == STUB_SENDS;
    const bool is_extended = !is_send && completion->has_imm;
    if (completion->status != IBV_WC_SUCCESS && has_flushed)
        return;
    has_flushed = completion->status != IBV_WC_SUCCESS;
    uint64_t *const cqe = cqes + (size_t)produced++ * WORDS;
    if (is_extended)
        cqes[(size_t)produced++ * WORDS + STATE] = htole64(1ULL << VALID | 1ULL << HAS_IMM);
    cqe[BYTES] = htole64(completion->length);
    cqe[CONTEXT] = htole64(context);
    cqe[QP_ID] = htole64(qp_id << 32);
    cqe[STATE] =
        htole64((uint64_t)completion->index << INDEX | 1ULL << VALID |
                (is_extended ? 1ULL << EXTENDED : 0) | (is_send ? 1ULL << OF_SENDS : 0) |
                (has_flushed ? error : opcode_of(completion) << OPCODE));
}

static int complete(struct stub_call *call) {
    switch (call->command) {
    case IB_USER_VERBS_CMD_GET_CONTEXT:
        *(struct irdma_alloc_ucontext_resp *)call->out =
            (struct irdma_alloc_ucontext_resp){.max_pds = 1 << 18,
                                               .max_qps = 1 << 18,
                                               .wq_size = 8126,
                                               .kernel_ver = IRDMA_ABI_VER,
                                               .feature_flags = 3, // RTS_AE, CQ_RESIZE
                                               .max_hw_wq_frags = 13,
                                               .max_hw_read_sges = 13,
                                               .max_hw_inline = 101,
                                               .max_hw_rq_quanta = 32768,
                                               .max_hw_wq_quanta = 32768,
                                               .min_hw_cq_size = 4,
                                               .max_hw_cq_size = 1048575,
                                               .max_hw_sq_chunk = 8,
                                               .hw_rev = 2};
        return 0;
    case IB_USER_VERBS_CMD_ALLOC_PD:
        ((struct irdma_alloc_pd_resp *)call->out)->pd_id = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_CQ:
    case STUB_CREATE_CQ_EX:
        produced = 0;
        cqes = (void *)(uintptr_t)((const struct irdma_create_cq_req *)call->in)->user_cq_buf;
        ((struct irdma_create_cq_resp *)call->out)->cq_id = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP: // linux hw/irdma/verbs.c, irdma_create_qp()
        context = ((const struct irdma_create_qp_req *)call->in)->user_compl_ctx;
        qp_id = call->handle;
        has_flushed = false;
        *(struct irdma_create_qp_resp *)call->out =
            (struct irdma_create_qp_resp){.qp_id = call->handle,
                                          .actual_sq_size = call->qp->max_send_wr,
                                          .actual_rq_size = call->qp->max_recv_wr,
                                          // writes with immediate data; also sends, and RoCE
                                          .qp_caps = stub_driver()->is_iwarp ? 1 : 7};
        return 0;
    default:
        return 0;
    }
}

const struct stub_driver stub_irdma = {.name = "irdma",
                                       .id = RDMA_DRIVER_IRDMA,
                                       .abi = 5,
                                       .describe = describe,
                                       .complete = complete,
                                       .complete_one = complete_one};
