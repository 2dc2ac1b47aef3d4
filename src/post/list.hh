// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// list.hh -- posts a list of entries to the device
//
// No operation is posted twice: after a failure the list shows which operations the device has
// accepted, or may have accepted.

#pragma once

#include <algorithm>
#include <utility>

#include "post/entry.hh"
#include "verbs/objects.hh"

namespace rpma {

// The result of posting a list.
struct Outcome {
    ibv_send_wr *next; // the first operation that the device did not accept; nullptr: none
    int result = 0;    // result of the provider's call that failed
    // The operations of the provider's call; end is nullptr at the end of the list.
    ibv_send_wr *begin = nullptr, *end = nullptr;
    bool is_native = false; // the call was ibv_wr_complete()

    bool is_success() const { return next == nullptr && result == 0; }
};

// Continues with an operation that was rejected after earlier ones, with error number 0. Posted
// as the first of a list, it is rejected with its error number.
[[gnu::cold, gnu::noinline]] Outcome post_rest(ibv_qp *qp, ibv_send_wr *first);

// The outcome of an ibv_post_send() of a list, which may have stored bad. The caller sets bad
// to first: rxe and siw then set it to nullptr (rxe_post_send(), siw_post_send()), mlx5 changes
// it on failure only (_mlx5_post_send()).
//
// siw_post_send() of siw may return the 0 of its doorbell although it rejected an operation:
// bad then points to this operation. rxe_post_send() and siw_post_send() queue all operations
// and clear bad before their doorbell fails.
inline Outcome plain_outcome(ibv_qp *qp, ibv_send_wr *first, ibv_send_wr *bad, int result) {
    if (result != 0) [[unlikely]]
        return {bad, result, first, nullptr, false};
    if (bad != first && bad != nullptr) [[unlikely]]
        return post_rest(qp, bad);
    return {nullptr};
}

// The largest number of operations for an extended queue pair in one call. It accepts all of
// them or none, so they must fit into the empty send queue.
inline uint32_t max_chunk([[maybe_unused]] const rpma_conn &conn) {
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    if (conn.extended != nullptr)
        return std::max(conn.granted().max_send_wr, 1U);
#endif
    return UINT32_MAX;
}

#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
// Posts to an extended queue pair, in one call of the provider unless is_split is set.
Outcome post_native_list(const rpma_conn &conn, ibv_send_wr *first, bool is_split);
#endif

// Posts a list in one call of the provider. A list is split if it has native operations
// together with operations with several SGEs, or more operations than the send queue holds.
[[gnu::always_inline]] inline Outcome post_list(const rpma_conn &conn, ibv_send_wr *first,
                                                [[maybe_unused]] ListFlags list_flags,
                                                [[maybe_unused]] bool is_split) {
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    if ((list_flags & HAS_NATIVE) != 0)
        return post_native_list(conn, first, is_split);
#endif
    ibv_send_wr *bad = first;
    const int result = ibv_post_send(conn.qp, first, &bad);
    return plain_outcome(conn.qp, first, bad, result);
}

inline rpma_work make_work(rpma_work_type type, const rpma_mr_remote *remote,
                           std::size_t remote_offset, const void *op_context) {
    rpma_work work = {};
    work.type = type;
    work.remote = remote;
    work.remote_offset = remote_offset;
    work.op_context = op_context;
    return work;
}

// The slow path of the functions that post one operation. work has the arguments of the caller,
// except flags: such a function ignores flags that its operation does not have.
[[gnu::noinline]] int post_slow(const CallSite &site, rpma_conn *conn, rpma_work &work,
                                int flags);

// Reports the failure of a list, and returns the code. index_of returns the index of a work
// request in array; nullptr is the end of the list.
template <class IndexOf>
[[gnu::cold, gnu::noinline]] int report_list(const char *function, const char *array,
                                             const rpma_conn &conn, const Outcome &outcome,
                                             const IndexOf &index_of) {
    const bool is_queued = outcome.next == outcome.end;
    // A plain list is accepted up to the rejected operation, a native run as a whole.
    const bool is_whole = is_queued || outcome.is_native;
    const ibv_send_wr &first = is_whole ? *outcome.begin : *outcome.next;
    const Part part = {array, index_of(&first),
                       is_whole ? index_of(outcome.end) - 1 : index_of(&first),
                       !is_queued          ? ""
                       : outcome.is_native ? " (may be queued)"
                                           : " (queued)"};
    return outcome.is_native
               ? fail_native(function, conn, first, outcome.end, outcome.result, &part)
               : fail_part(function, conn, first, outcome.result, part);
}

} // namespace rpma
