// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// refused.hh -- logs a failed post, and chooses its code
//
// A function of a release before 1.4 reports a full queue as RPMA_E_PROVIDER, a function added
// in 1.4 as RPMA_E_AGAIN.

#pragma once

#include <infiniband/verbs.h>

#include "base/refuse.hh"

struct rpma_conn;

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
inline constexpr ReceiveQueue CONN_RECEIVES = {"ibv_post_recv", "rpma_conn_cfg_set_rq_size"};
inline constexpr ReceiveQueue SRQ_RECEIVES = {"ibv_post_srq_recv", "rpma_srq_cfg_set_rq_size"};

// The members of a rejected work request that the log shows.
struct RejectedSend {
    uint64_t wr_id;
    uint64_t remote_addr;
    ibv_sge sge;   // the first one
    uint32_t rkey; // not of a message
    ibv_wr_opcode opcode;
    unsigned send_flags;
};
struct RejectedReceive {
    uint64_t wr_id;
    ibv_sge sge; // the first one, or an empty one
};

// Each of these logs the failure and returns the code. result is the provider's.
//
// ibv_post_send() rejected an operation with one SGE or none. wr is passed by value, see
// tuned.hh.
[[gnu::cold, gnu::noinline]] int refused_send(const char *function, const rpma_conn &conn,
                                              RejectedSend wr, int result);
// The same if failures are not logged: a program that posts until the queue is full repeats it.
[[gnu::cold, gnu::noinline]] int refused_unlogged(const char *function, const rpma_conn &conn,
                                                  ibv_wr_opcode opcode, uint64_t wr_id,
                                                  int result);
// The same for an operation of a list, and for several SGEs.
[[gnu::cold, gnu::noinline]] int refused_part(const char *function, const rpma_conn &conn,
                                              const ibv_send_wr &wr, int result,
                                              const Part &part);
// ibv_wr_complete() rejected the operations from first up to end, nullptr for the end of the
// list. The operations of a part are entries.
[[gnu::cold, gnu::noinline]] int refused_natively(const char *function, const rpma_conn &conn,
                                                  const ibv_send_wr &first,
                                                  const ibv_send_wr *end, int result,
                                                  const Part *part = nullptr);
// ibv_post_recv() or ibv_post_srq_recv() rejected a receive; size is that of its queue.
[[gnu::cold, gnu::noinline]] int refused_receive(const char *function,
                                                 const ReceiveQueue &queue, uint32_t size,
                                                 RejectedReceive wr, int result,
                                                 const Part *part = nullptr);

// Is true if the error of a post means that a queue is full.
bool is_full(int result);

} // namespace rpma
