// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub_qedr.c -- qedr with RoCE (linux hw/qedr/verbs.c)

#include "stub.h"

#include <endian.h>
#include <infiniband/verbs.h>
#include <rdma/qedr-abi.h>
#include <stdlib.h>
#include <string.h>

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->atomic_cap = 2; // IB_ATOMIC_GLOB
    device->max_qp_wr = 0x7fff;
    device->max_sge = device->max_sge_rd = device->max_srq_sge = 4;
    device->max_srq = 1 << 15;
}

static unsigned char *cqes; // of the last CQ
static size_t produced;     // entries of it
static uint64_t qp;         // the driver's address of the last QP
static uint32_t *shared_receives;

// rdma-core providers/qedr/qelr_hsi_rdma.h, enum rdma_cqe_requester_status_enum
static unsigned char send_status(uint32_t status) {
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
    case IBV_WC_WR_FLUSH_ERR:
        return 11;
    default:
        abort();
    }
}

// enum rdma_cqe_responder_status_enum
static unsigned char receive_status(uint32_t status) {
    return status == IBV_WC_SUCCESS        ? 0
           : status == IBV_WC_LOC_LEN_ERR  ? 2
           : status == IBV_WC_WR_FLUSH_ERR ? 7
                                           : 4;
}

// struct rdma_cqe_requester and rdma_cqe_responder, with the toggle bit of the first lap
static void complete_one(const struct stub_completion *completion) {
    enum { SIZE = 32, SENDS = 0, WR_ID = 0, QP = 8, BYTES = 20, RECEIVES = 28, FLAGS = 30 };
    enum { STATUS = 31, TOGGLE = 1, TYPE_SHIFT = 1, IMM = 1 << 4, WRITE = 1 << 5 };
    enum { OF_RECEIVE = 1, OF_SHARED_RECEIVE, UNKNOWN_TYPE = 3 };
    const bool is_send = completion->queue == STUB_SENDS;
    const bool is_shared = completion->queue == STUB_SHARED_RECEIVES;
    unsigned char *const cqe = cqes + produced++ * SIZE;
    const uint16_t consumed = htole16((uint16_t)(completion->index + 1));
    const uint32_t length = htole32(completion->length);
    const unsigned type = is_shared ? OF_SHARED_RECEIVE : is_send ? 0 : OF_RECEIVE;
    memset(cqe, 0, SIZE);
    memcpy(cqe + QP, &qp, sizeof(qp));
    memcpy(cqe + (is_send ? SENDS : RECEIVES), &consumed, sizeof(consumed));
    if (is_shared) // struct rdma_srq_wqe_header: the wr_id of the receive
        memcpy(cqe + WR_ID, shared_receives, 2 * sizeof(*shared_receives));
    if (!is_send)
        memcpy(cqe + BYTES, &length, sizeof(length));
    cqe[STATUS] =
        is_send ? send_status(completion->status) : receive_status(completion->status);
    cqe[FLAGS] = (unsigned char)(TOGGLE | type << TYPE_SHIFT |
                                 (!is_send && completion->has_imm ? IMM : 0) |
                                 (completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? WRITE : 0));
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
        cqes = (void *)(uintptr_t)((const struct qedr_create_cq_ureq *)call->in)->addr;
        produced = 0;
        ((struct qedr_create_cq_uresp *)call->out)->icid = (uint16_t)call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_SRQ:
    case IB_USER_VERBS_CMD_CREATE_XSRQ:
        shared_receives =
            (void *)(uintptr_t)((const struct qedr_create_srq_ureq *)call->in)->srq_addr;
        ((struct qedr_create_srq_uresp *)call->out)->srq_id = (uint16_t)call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP:
        qp = htole64((uint64_t)((const struct qedr_create_qp_ureq *)call->in)->qp_handle_hi
                         << 32 |
                     ((const struct qedr_create_qp_ureq *)call->in)->qp_handle_lo);
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
                                      .complete = complete,
                                      .complete_one = complete_one};
