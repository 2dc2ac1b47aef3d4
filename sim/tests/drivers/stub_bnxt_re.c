// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub_bnxt_re.c -- bnxt_re, with the limits of a BCM57508 (linux hw/bnxt_re/qplib_sp.c)

#include "stub.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/bnxt_re-abi.h>
#include <stdlib.h>
#include <string.h>

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->atomic_cap = 2; // IB_ATOMIC_GLOB
    device->max_qp_wr = 65535;
    device->max_sge = device->max_sge_rd = device->max_srq_sge = 6;
    device->max_cqe = (1 << 17) - 1;
    device->max_srq_wr = 65535;
}

static unsigned char *cqes; // of the last CQ
static size_t produced;     // entries of it
static uint64_t qp;         // the driver's address of the last QP
static bool is_flushed;

// rdma-core providers/bnxt_re/bnxt_re-abi.h, enum bnxt_re_req_wc_status
static uint32_t send_status(uint32_t status) {
    switch (status) {
    case IBV_WC_SUCCESS:
        return 0;
    case IBV_WC_LOC_LEN_ERR:
        return 2;
    case IBV_WC_LOC_PROT_ERR:
        return 4;
    case IBV_WC_REM_INV_REQ_ERR:
        return 6;
    case IBV_WC_REM_ACCESS_ERR:
        return 7;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return 9;
    case IBV_WC_RETRY_EXC_ERR:
        return 10;
    default:
        abort();
    }
}

// enum bnxt_re_rsp_wc_status
static uint32_t receive_status(uint32_t status) {
    return status == IBV_WC_SUCCESS ? 0 : status == IBV_WC_LOC_LEN_ERR ? 2 : 3;
}

// struct bnxt_re_req_cqe, bnxt_re_rc_cqe, bnxt_re_term_cqe and bnxt_re_bcqe, with the phase of
// the first lap. The terminating entry lets the driver flush both queues itself.
static void complete_one(const struct stub_completion *completion) {
    enum { SIZE = 32, BYTES = 0, RECEIVING_QP = 8, CONSUMER = 8, STATE = 24, ID = 28 };
    enum { OF_SEND = 0, OF_RECEIVE, TERMINATING = 14, OF_UNKNOWN_TYPE = 9 };
    enum { PHASE = 1, TYPE_SHIFT = 1, STATUS_SHIFT = 8, IMM = 1 << 17, WRITE = 1 << 19 };
    const bool is_flush = completion->status == IBV_WC_WR_FLUSH_ERR;
    const bool is_send = is_flush || completion->queue == STUB_SENDS;
    if (is_flush && is_flushed)
        return;
    is_flushed |= is_flush;
    unsigned char *const cqe = cqes + produced++ * SIZE;
    const uint64_t of = htole64(qp);
    const uint32_t length = htole32(completion->length),
                   consumer = htole32(completion->index + 1), id = htole32(completion->index);
    const uint32_t type = is_flush                                    ? TERMINATING
                          : completion->opcode == STUB_UNKNOWN_OPCODE ? OF_UNKNOWN_TYPE
                          : is_send                                   ? OF_SEND
                                                                      : OF_RECEIVE;
    const uint32_t status = is_flush  ? 0
                            : is_send ? send_status(completion->status)
                                      : receive_status(completion->status);
    const uint32_t state =
        htole32(PHASE | type << TYPE_SHIFT | status << STATUS_SHIFT |
                (!is_send && completion->has_imm ? IMM : 0) |
                (completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? WRITE : 0));
    memcpy(cqe + (is_send ? 0 : RECEIVING_QP), &of, sizeof(of));
    if (is_send)
        memcpy(cqe + CONSUMER, &consumer, sizeof(consumer));
    else
        memcpy(cqe + BYTES, &length, sizeof(length));
    memcpy(cqe + ID, &id, sizeof(id));
    memcpy(cqe + STATE, &state, sizeof(state));
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
        *(struct bnxt_re_cq_resp *)call->out =
            (struct bnxt_re_cq_resp){.cqid = call->handle, .phase = 1};
        cqes = (void *)(uintptr_t)((const struct bnxt_re_cq_req *)call->in)->cq_va;
        produced = 0;
        cq->cqe = stub_power_of_two(cq->cqe + 1); // hw/bnxt_re/ib_verbs.c, bnxt_re_create_cq()
        return 0;
    case IB_USER_VERBS_CMD_CREATE_SRQ:
        ((struct bnxt_re_srq_resp *)call->out)->srqid = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP:
        ((struct bnxt_re_qp_resp *)call->out)->qpid = call->handle;
        qp = ((const struct bnxt_re_qp_req *)call->in)->qp_handle;
        is_flushed = false;
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
                                         .complete = complete,
                                         .complete_one = complete_one};
