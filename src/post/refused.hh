// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// refused.hh -- logs a failed post, and chooses its code
//
// A function of a release before 1.4 reports a full queue as RPMA_E_PROVIDER, a function added
// in 1.4 as RPMA_E_AGAIN.

#pragma once

#include <infiniband/verbs.h>

#include "base/refuse.hh"

namespace rpma {

// The operations of an array or a batch in one call of the provider. Only functions added in
// 1.4 have them.
struct Part {
    const char *array;    // name of the array: "batch"
    uint32_t first, last; // indexes, counted from 0
    const char *state;    // their state after the call, "" if the provider rejected them
};

// The queue for receives, for the log.
struct ReceiveQueue {
    const char *post;    // name of the provider's call
    const char *setting; // name of the setter of the queue's size
};

// Each of these logs the failure and returns the code. result is the provider's.
//
// ibv_post_send() rejected wr, which holds its connection (tuned.hh).
[[gnu::cold, gnu::noinline]] int refused_send(const char *function, const ibv_send_wr &wr,
                                              int result, const Part *part = nullptr);
// ibv_wr_complete() rejected the operations from first up to end, nullptr for the end of the
// list. The operations of a part are slots.
[[gnu::cold, gnu::noinline]] int refused_natively(const char *function, const rpma_conn &conn,
                                                  const ibv_send_wr &first,
                                                  const ibv_send_wr *end, int result,
                                                  const Part *part = nullptr);
[[gnu::cold, gnu::noinline]] int refuse_receive(const char *function, const ReceiveQueue &names,
                                                uint32_t room, const ibv_recv_wr &wr,
                                                int result, const Part *part);
// Is true if the error of a post means that a queue is full.
bool is_full(int result);

} // namespace rpma
