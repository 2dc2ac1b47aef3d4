// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// req.hh -- the requester: the order of the requests of a queue pair, and their retries.

#pragma once

#include "resp.hh"

namespace sim {

// Executes and completes the due requests of the send queue.
void run_sends(Fabric &fabric, Qp &qp);
// Continues the requests of peers that wait for a receive.
void retry_rejected_sends(Fabric &fabric);
// Runs the send queue at `time`, unless it runs earlier.
void start_send_timer(Fabric &fabric, Qp &qp, uint64_t time);

} // namespace sim
