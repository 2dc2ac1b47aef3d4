// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// refused.hh -- what a post that failed says in the log, and its code
//
// A function of a release before 1.4 reports a full queue as RPMA_E_PROVIDER, a function that
// is new with 1.4 as RPMA_E_AGAIN.

#pragma once

#include <infiniband/verbs.h>

#include "base/refuse.hh"

namespace rpma {

// Which operations of an array or a batch a call of the provider was given. Only functions that
// are new with 1.4 have those.
struct Part {
    const char *array;    // what they are elements of: "batch"
    uint32_t first, last; // from 0
    const char *state;    // what became of them, "" if the provider refused them
};

// The queue that was to take receives, for the log.
struct ReceiveQueue {
    const char *post;    // the call of the provider
    const char *setting; // the function that sets the size of the queue
};

// Each of these logs the failure and returns the code. result is what the provider returned.
//
// ibv_post_send() refused wr, which keeps its connection (tuned.hh).
[[gnu::cold, gnu::noinline]] int refused_send(const char *function, const ibv_send_wr &wr,
                                              int result, const Part *part = nullptr);
// ibv_wr_complete() refused the operations from first up to end, nullptr for the end of the
// list. Those of a part are slots.
[[gnu::cold, gnu::noinline]] int refused_natively(const char *function, const rpma_conn &conn,
                                                  const ibv_send_wr &first,
                                                  const ibv_send_wr *end, int result,
                                                  const Part *part = nullptr);
[[gnu::cold, gnu::noinline]] int refuse_receive(const char *function, const ReceiveQueue &names,
                                                uint32_t room, const ibv_recv_wr &wr,
                                                int result, const Part *part);
// Whether the error of a post means that a queue has no room.
bool is_full(int result);

} // namespace rpma
