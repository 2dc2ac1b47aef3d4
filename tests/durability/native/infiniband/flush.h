/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

// flush.h -- names and values of rdma-core 45 and Linux 6.2 for native flush and atomic write.

#ifndef DURABILITY_FLUSH_H
#define DURABILITY_FLUSH_H 1

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>

constexpr auto IBV_WR_FLUSH = static_cast<ibv_wr_opcode>(14);
constexpr int IBV_ACCESS_FLUSH_GLOBAL = 1 << 8, IBV_ACCESS_FLUSH_PERSISTENT = 1 << 9;
constexpr unsigned long long IB_UVERBS_DEVICE_FLUSH_GLOBAL = 1ULL << 38,
                             IB_UVERBS_DEVICE_FLUSH_PERSISTENT = 1ULL << 39,
                             IB_UVERBS_DEVICE_ATOMIC_WRITE = 1ULL << 40;
constexpr int IBV_QP_EX_WITH_FLUSH = 1 << 11;
constexpr uint8_t IBV_FLUSH_GLOBAL = 1, IBV_FLUSH_PERSISTENT = 2, IBV_FLUSH_RANGE = 0;

inline void ibv_wr_flush(ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t len,
                         uint8_t type, uint8_t level) {
    qp->wr_flush(qp, rkey, remote_addr, len, type, level);
}

#endif
