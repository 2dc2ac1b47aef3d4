// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub_mlx4.c -- mlx4, with the limits of a ConnectX-3 (linux hw/mlx4/main.c)

#include "stub.h"

#include <endian.h>
#include <infiniband/verbs.h>
#include <rdma/mlx4-abi.h>
#include <string.h>

enum { CQE_SIZE = 64 };

static unsigned char *cqes; // of the last CQ
static size_t produced;     // entries of it
static uint32_t qpn;        // of the last QP

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->atomic_cap = 1; // IB_ATOMIC_HCA
    device->max_qp_wr = 16351;
    device->max_sge = 32;
    device->max_srq_sge = 31;
    device->max_srq_wr = 16383;
}

// The entries are invalid before the device writes them: linux net/ethernet/mellanox/mlx4/cq.c,
// mlx4_init_user_cqes().
static void create_cq(struct stub_call *call, uint32_t last_entry) {
    const struct mlx4_ib_create_cq *const request = call->in;
    cqes = (unsigned char *)(uintptr_t)request->buf_addr;
    produced = 0;
    memset((void *)(uintptr_t)request->buf_addr, 0xcc, ((size_t)last_entry + 1) * CQE_SIZE);
    ((struct mlx4_ib_create_cq_resp *)call->out)->cqn = call->handle;
}

// rdma-core providers/mlx4/mlx4dv.h, struct mlx4_cqe and mlx4_err_cqe, at the end of an entry
// of 64 bytes; the owner bit of the first lap is 0
static void complete_one(const struct stub_completion *completion) {
    enum { QPN = 0, BYTES = 20, COUNTER = 24, VENDOR = 26, SYNDROME, OPCODE = 31 };
    enum { IS_SEND = 0x40, RECEIVED_WRITE = 0, RECEIVED, RECEIVED_IMM, ERROR = 0x1e };
    const bool is_send = completion->queue == STUB_SENDS;
    unsigned char *const cqe = cqes + (size_t)produced++ * CQE_SIZE + CQE_SIZE / 2;
    const uint32_t of = htobe32(qpn), bytes = htobe32(completion->length);
    const uint16_t counter = htobe16((uint16_t)completion->index);
    unsigned opcode = is_send || completion->opcode == STUB_UNKNOWN_OPCODE
                          ? stub_mlx_opcode(completion)
                      : completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? RECEIVED_WRITE
                      : completion->has_imm                             ? RECEIVED_IMM
                                                                        : RECEIVED;
    memset(cqe, 0, CQE_SIZE / 2);
    memcpy(cqe + QPN, &of, sizeof(of));
    memcpy(cqe + BYTES, &bytes, sizeof(bytes));
    memcpy(cqe + COUNTER, &counter, sizeof(counter));
    if (completion->status != IBV_WC_SUCCESS) { // mlx4/cq.c, mlx4_handle_error_cqe()
        opcode = ERROR;
        cqe[VENDOR] = 0x88;
        cqe[SYNDROME] = stub_syndrome(completion->status);
    }
    cqe[OPCODE] = (unsigned char)(opcode | (is_send ? IS_SEND : 0));
}

static int complete(struct stub_call *call) {
    struct ib_uverbs_create_srq_resp *const srq = call->response;
    switch (call->command) {
    case IB_USER_VERBS_CMD_GET_CONTEXT:
        *(struct mlx4_ib_alloc_ucontext_resp *)call->out =
            (struct mlx4_ib_alloc_ucontext_resp){.dev_caps = MLX4_USER_DEV_CAP_LARGE_CQE,
                                                 .qp_tab_size = 1 << 18,
                                                 .bf_reg_size = 512,
                                                 .bf_regs_per_page = 8,
                                                 .cqe_size = CQE_SIZE};
        return 0;
    case IB_USER_VERBS_CMD_ALLOC_PD:
        ((struct mlx4_ib_alloc_pd_resp *)call->out)->pdn = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_CQ:
        create_cq(call, ((const struct ib_uverbs_create_cq *)call->request)->cqe);
        return 0;
    case STUB_CREATE_CQ_EX:
        create_cq(call, ((const struct ib_uverbs_ex_create_cq *)call->request)->cqe);
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP:
    case STUB_CREATE_QP_EX:
        qpn = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_SRQ:
    case IB_USER_VERBS_CMD_CREATE_XSRQ:
        ((struct mlx4_ib_create_srq_resp *)call->out)->srqn = call->handle;
        srq->max_wr =
            stub_power_of_two(srq->max_wr + 1) - 1; // hw/mlx4/srq.c, mlx4_ib_create_srq()
        return 0;
    default:
        return 0;
    }
}

const struct stub_driver stub_mlx4 = {.name = "mlx4",
                                      .id = RDMA_DRIVER_MLX4,
                                      .abi = 4,
                                      .describe = describe,
                                      .complete = complete,
                                      .complete_one = complete_one};
