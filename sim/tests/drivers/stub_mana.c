// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// stub_mana.c -- mana, whose limits are those of its firmware (linux hw/mana/). libmana creates
// QPs of type RC since rdma-core 53.

#include "stub.h"

#include <errno.h>

// Of include/uapi/rdma/mana-abi.h, which Linux has since 6.2, and QPs of type RC since 6.12.
struct cq_response {
    uint32_t cqid, reserved;
};
struct rc_qp_response {
    uint32_t queue_id[4];
};

static void describe(struct ib_uverbs_query_device_resp *device) {
    device->max_srq = device->max_srq_wr = device->max_srq_sge = 0;
}

static int complete(struct stub_call *call) {
    struct rc_qp_response *const made = call->out;
    switch (call->command) {
    case IB_USER_VERBS_CMD_CREATE_CQ:
        ((struct cq_response *)call->out)->cqid = call->handle;
        return 0;
    case IB_USER_VERBS_CMD_CREATE_QP: // qp.c, mana_ib_create_rc_qp()
        if (stub_check_qp(call->qp, UINT32_MAX))
            return EINVAL;
        for (uint32_t i = 0; i < 4; i++) // two of them find the QP
            made->queue_id[i] = call->handle * 4 + i;
        return 0;
    default:
        return 0;
    }
}

const struct stub_driver stub_mana = {.name = "mana",
                                      .id = 20, // RDMA_DRIVER_MANA of Linux 6.2
                                      .abi = 1,
                                      .describe = describe,
                                      .complete = complete};
