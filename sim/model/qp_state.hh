// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// qp_state.hh -- a queue pair fails, is reset or is deleted.

#pragma once

#include "fabric.hh"

namespace sim {

// From now on, each send has a reply, until one is accepted.
inline void withdraw_credit(const Qp &qp) {
    if (qp.credit)
        __atomic_store_n(&qp.credit->limit, qp.unanswered, __ATOMIC_RELAXED);
}

inline bool is_iwarp(const Qp &qp) {
    return qp.context->device->profile->transport == SIM_IWARP;
}
void fail_qp(Fabric &fabric, Qp &qp); // moves the QP to the error state, flushes its queues
void fail_qp_later(Fabric &fabric, uint32_t number);
void disconnect_iwarp(Fabric &fabric, Qp &qp); // the QP keeps its state
void reset_qp(Fabric &fabric, Qp &qp);         // empties the queues without completions
void release_qp(Fabric &fabric, Qp &qp);       // called before the QP is deleted

} // namespace sim
