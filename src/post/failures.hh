// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failures.hh -- logs rejected operations and failed posts, and chooses their codes
//
// A function of a release before 1.4 reports a full queue as RPMA_E_PROVIDER, a function added
// in 1.4 as RPMA_E_AGAIN.

#pragma once

#include <cinttypes>
#include <infiniband/verbs.h>

#include "base/refuse.hh"
#include "core/flush.hh"
#include "verbs/text.hh"

struct rpma_conn;

namespace rpma {

// The names in log lines of the members of struct rpma_work. Those of a function that posts one
// operation are its parameters, and depend on the direction of the operation.
struct Names {
    const char *local, *remote, *remote_offset, *flush_type, *flush_len;
};
inline constexpr Names NAMES[] = {
    {"local.mr", "work.remote", "remote_offset", "flush_type", "flush_len"},
    {"src", "dst", "dst_offset", "type", "len"},
    {"dst", "src", "src_offset", "type", "len"},
};
enum class Parameters : uint8_t { OF_WORK, TO_DST, FROM_SRC };

// Identifies an operation in log lines: an element of a caller's array, or a single operation.
struct CallSite {
    const char *function;
    const char *array = nullptr; // name of the caller's array, or nullptr
    uint32_t index = 0;
    // Earlier operations of the array are posted before this one. If they fill the queue, the
    // result is a would-block result. Otherwise this operation is validated again, as the first
    // of a provider's call, and its failure is logged.
    bool is_later = false;
    Parameters parameters = Parameters::OF_WORK;

    const Names &names() const { return NAMES[static_cast<unsigned>(parameters)]; }
    // "work[2]: ", or "".
    Text prefix() const;
};

// Logs that an operation is not valid. RPMA_E_INVAL.
[[gnu::cold, gnu::noinline, gnu::format(printf, 4, 5)]] int
refuse(const CallSite &site, const char *file, int line, const char *format, ...);

// Logs why a flush has no method, and returns the code of this failure.
[[gnu::cold, gnu::noinline]] int refuse_flush(const CallSite &site, const rpma_conn &conn,
                                              FlushMasks region, rpma_flush_type type);
// The same for remote atomics.
[[gnu::cold, gnu::noinline]] int refuse_atomic(const CallSite &site, const rpma_conn &conn);

// The operations of an array or a batch in one call of the provider. Only functions added in
// 1.4 post arrays and batches.
struct Part {
    const char *array;    // name of the array: "batch"
    uint32_t first, last; // indexes, counted from 0
    const char *state;    // their state after the call, "" if the provider rejected them

    // The doorbell of rxe and siw may fail with the error number of a full queue (Linux,
    // drivers/infiniband/core/uverbs_cmd.c, ib_uverbs_post_send(): ENOMEM).
    bool may_be_queued() const { return state[0] != '\0'; }
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
RejectedSend rejected_send(const ibv_send_wr &wr);
struct RejectedReceive {
    uint64_t wr_id;
    ibv_sge sge; // the first one, or an empty one
};

// Each of these logs the failure and returns the code. result is the provider's.
//
// ibv_post_send() rejected an operation with one SGE or none. wr is passed by value, see
// tuned.hh.
[[gnu::cold, gnu::noinline]] int fail_send(const char *function, const rpma_conn &conn,
                                           RejectedSend wr, int result);
// The same while failures are not logged: cheap, for programs that post until the queue is
// full.
[[gnu::cold, gnu::noinline]] int fail_unlogged(const char *function, const rpma_conn &conn,
                                               ibv_wr_opcode opcode, uint64_t wr_id,
                                               int result);
// The same for an operation of a list, and for several SGEs.
[[gnu::cold, gnu::noinline]] int fail_part(const char *function, const rpma_conn &conn,
                                           const ibv_send_wr &wr, int result, const Part &part);
// ibv_wr_complete() rejected the operations from first up to, but without, end; nullptr: up to
// the end of the list. With part, each work request must be in an Entry.
[[gnu::cold, gnu::noinline]] int fail_native(const char *function, const rpma_conn &conn,
                                             const ibv_send_wr &first, const ibv_send_wr *end,
                                             int result, const Part *part = nullptr);
// ibv_post_recv() or ibv_post_srq_recv() rejected a receive; size is that of its queue.
[[gnu::cold, gnu::noinline]] int fail_receive(const char *function, const ReceiveQueue &queue,
                                              uint32_t size, RejectedReceive wr, int result,
                                              const Part *part = nullptr);

} // namespace rpma

// Log message: a reserved member is not 0.
#define RPMA_RESERVED(member) member " is 0x%" PRIx64 "; possible: 0"
