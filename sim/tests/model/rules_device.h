// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// rules_device.h -- a device whose limits and error numbers all differ.

#pragma once

#include "../../device/rules.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define IS(value, expected) assert_int_equal((long)(value), (long)(expected))

// Some limits need more than 16 bits.
static const struct sim_profile device = {
    .transport = SIM_ROCE,
    .attr = {.max_qp_wr = 0x10040,
             .max_sge = 0x10004,
             .max_sge_rd = 2,
             .max_cqe = 0x10020,
             .max_srq_wr = 0x10010,
             .max_srq_sge = 0x10003,
             .max_qp_init_rd_atom = 8,
             .max_qp_rd_atom = 6,
             .device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN,
             .atomic_cap = IBV_ATOMIC_HCA},
    .vectors = 2,
    .cq_error = EINVAL,
    .max_inline = 0x10080,
    .inline_per_sge = 16,
    .max_send_sge = 0x10004,
    .max_recv_sge = 5,
    .full_queue_error = ENOSPC,
    .inline_error = E2BIG,
    .sge_error = EDOM,
    .opcode_error = EBADF,
    .doorbell_error = EBADF,
    .invalid_error = EBADF,
    .builder_error = ENOBUFS,
    .has_srq = true,
    .refuses_empty_srq = true,
    .has_send_imm = true,
    .has_write_imm = true,
    .has_native_flush = true,
    .has_native_atomic_write = true,
    .has_odp = true,
    .has_qp_ex = true,
    .checks_atomics = true,
    .checks_read_access = true,
};

// The same device with one difference.
#define BUT(...)                       \
    struct sim_profile other = device; \
    __VA_ARGS__

enum {
    RESET = IBV_QPS_RESET,
    INIT = IBV_QPS_INIT,
    RTR = IBV_QPS_RTR,
    RTS = IBV_QPS_RTS,
    SQD = IBV_QPS_SQD,
    SQE = IBV_QPS_SQE,
    ERR = IBV_QPS_ERR,
    RC = IBV_QPT_RC,
    UC = IBV_QPT_UC,
    UD = IBV_QPT_UD,
};

static inline int change(const struct sim_profile *on, int type, int from, int to, int mask,
                         struct ibv_qp_attr attr) {
    attr.qp_state = (enum ibv_qp_state)to;
    attr.cur_qp_state = (enum ibv_qp_state)from;
    return sim_check_qp_change(on, (enum ibv_qp_type)type, (enum ibv_qp_state)from, &attr,
                               mask | IBV_QP_STATE);
}

static const struct ibv_qp_attr valid_attr = {
    .port_num = 1, .path_mtu = IBV_MTU_1024, .ah_attr = {.port_num = 1, .is_global = 1}};
