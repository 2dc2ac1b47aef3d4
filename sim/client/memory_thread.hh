// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// memory_thread.hh -- a thread that accesses the memory of this process for the fabric.

#pragma once

// Starts the thread, which executes the requests of a mailbox (protocol/mailbox.hh) until the
// fabric closes it. `fd`: the memory of the mailbox. Returns an error number.
int rdma_sim_start_memory_thread(int fd);
