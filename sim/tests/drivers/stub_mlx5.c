// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub_mlx5.c -- mlx5, with the limits of a ConnectX-6 (linux hw/mlx5/main.c,
// set_ucontext_resp)

#include "stub.h"

#include <endian.h>
#include <infiniband/verbs.h>
#include <rdma/mlx5-abi.h>
#include <string.h>

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->atomic_cap = 1; // IB_ATOMIC_HCA
}

static char *cqes;         // of the last CQ
static uint32_t produced;  // entries of it
static uint32_t qpn, uidx; // of the last QP

// rdma-core providers/mlx5/mlx5dv.h, struct mlx5_cqe64 and mlx5_err_cqe, with the owner bit of
// the first lap
static void complete_one(const struct stub_completion *completion) {
    enum { SIZE = 64, UIDX = 32, BYTES = 44, VENDOR = 54, SYNDROME, OPCODE_QPN, COUNTER = 60 };
    enum { OP_OWN = 63, RECEIVED_WRITE = 1, RECEIVED, RECEIVED_IMM, REQUESTER_ERROR = 13 };
    enum { RESPONDER_ERROR = 14, OF_UNKNOWN_OPCODE = 8 };
    const bool is_send = completion->queue == STUB_SENDS;
    unsigned char *const cqe = (unsigned char *)cqes + (size_t)produced++ * SIZE;
    unsigned type = 0;
    uint32_t opcode = is_send ? stub_mlx_opcode(completion) : 0;
    if (completion->status != IBV_WC_SUCCESS) {
        type = is_send ? REQUESTER_ERROR : RESPONDER_ERROR;
        opcode = 0;
    } else if (completion->opcode == STUB_UNKNOWN_OPCODE) {
        type = is_send ? 0 : OF_UNKNOWN_OPCODE;
    } else if (!is_send) {
        type = completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? RECEIVED_WRITE
               : completion->has_imm                           ? RECEIVED_IMM
                                                               : RECEIVED;
    }
    const uint32_t user = htobe32(uidx), bytes = htobe32(completion->length);
    const uint32_t of = htobe32(opcode << 24 | qpn);
    const uint16_t counter = htobe16((uint16_t)completion->index);
    memcpy(cqe + UIDX, &user, sizeof(user));
    memcpy(cqe + BYTES, &bytes, sizeof(bytes));
    memcpy(cqe + OPCODE_QPN, &of, sizeof(of));
    memcpy(cqe + COUNTER, &counter, sizeof(counter));
    if (completion->status != IBV_WC_SUCCESS) { // mlx5/cq.c, mlx5_handle_error_cqe()
        cqe[VENDOR] = 0x88;
        cqe[SYNDROME] = stub_syndrome(completion->status);
    }
    cqe[OP_OWN] = (unsigned char)(type << 4);
}

static int complete(struct stub_call *call) {
    switch (call->command) {
    case IB_USER_VERBS_CMD_GET_CONTEXT:
        *(struct mlx5_ib_alloc_ucontext_resp *)call->out =
            (struct mlx5_ib_alloc_ucontext_resp){.qp_tab_size = 1 << 18,
                                                 .bf_reg_size = 512,
                                                 .tot_bfregs = 16,
                                                 .cache_line_size = 64,
                                                 .max_sq_desc_sz = 1024,
                                                 .max_rq_desc_sz = 512,
                                                 .max_send_wqebb = 1 << 15,
                                                 .max_recv_wr = 1 << 15,
                                                 .max_srq_recv_wr = (1 << 15) - 1,
                                                 .num_ports = 1,
                                                 .response_length = (uint32_t)call->out_size,
                                                 .cqe_version = 1,
                                                 .log_uar_size = 12,
                                                 .num_uars_per_page = 1};
        return 0;
    case IB_USER_VERBS_CMD_ALLOC_PD:
        ((struct mlx5_ib_alloc_pd_resp *)call->out)->pdn = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_CQ:
    case STUB_CREATE_CQ_EX:
        produced = 0;
        cqes = (char *)(uintptr_t)((const struct mlx5_ib_create_cq *)call->in)->buf_addr;
        ((struct mlx5_ib_create_cq_resp *)call->out)->cqn = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP:
    case STUB_CREATE_QP_EX:
        uidx = ((const struct mlx5_ib_create_qp *)call->in)->uidx;
        qpn = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_SRQ:
    case IB_USER_VERBS_CMD_CREATE_XSRQ:
        ((struct mlx5_ib_create_srq_resp *)call->out)->srqn = call->handle;
        return 0;
    default:
        return 0;
    }
}

const struct stub_driver stub_mlx5 = {.name = "mlx5",
                                      .id = RDMA_DRIVER_MLX5,
                                      .abi = 1,
                                      .describe = describe,
                                      .complete = complete,
                                      .complete_one = complete_one};
