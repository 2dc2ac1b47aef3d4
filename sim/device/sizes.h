// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// sizes.h -- how the user-space drivers size queues, and how much of a send queue a request
// uses.

#ifndef SIM_SIZES_H
#define SIM_SIZES_H 1

#include "rules.h"

#ifdef __cplusplus
extern "C" {
#endif

// The sizes in `actual` are the requested ones, and become those that posts are checked
// against. `reported`: those that the program gets.
struct sim_sizing {
    uint32_t (*cq)(uint32_t entries);
    void (*srq)(struct ibv_srq_attr *actual, struct ibv_srq_attr *reported); // NULL: no SRQ
    void (*qp)(struct ibv_qp_cap *actual, struct ibv_qp_cap *reported);
    // Returns the error of queues that are too large, or 0; NULL: attr.max_qp_wr is the limit.
    int (*check)(const struct ibv_qp_cap *requested);
    // The units of the send queue that a request uses; NULL: its size is in requests.
    uint32_t (*units)(const struct sim_send *send);
    bool checks_one_unit; // the last request may use more units than are free
};

#ifdef __cplusplus
}
#endif

#endif // SIM_SIZES_H
