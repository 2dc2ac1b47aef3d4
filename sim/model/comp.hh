// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// comp.hh -- the completer: the completions of requests and receives.

#pragma once

#include "fabric.hh"

namespace sim {

// Completes the executed requests in order; the first failure moves the QP to the error state.
void complete_sends(Fabric &fabric, Qp &qp);
// Returns false if the completion queue is full.
bool complete_receive(Fabric &fabric, Qp &qp, const Receive &receive, ibv_wc wc,
                      bool is_solicited);
void flush_receives(Fabric &fabric, Qp &qp);
void overrun_cq(Fabric &fabric, Cq &cq);
// Frees the entries whose completions the program has polled.
void free_polled(Fabric &fabric, Cq &cq);
void remove_completions(Fabric &fabric, const Qp &qp);

} // namespace sim
