// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// list.hh -- posts a list of slots to the device
//
// No operation is posted twice: after a failure the list shows which operations the device has
// taken, or may have taken.

#pragma once

#include <algorithm>
#include <utility>

#include "post/refused.hh"
#include "post/slot.hh"
#include "post/tuned.hh"
#include "verbs/objects.hh"

namespace rpma {

// How much of a list was posted.
struct Outcome {
    ibv_send_wr *next; // the first operation that the device did not take; nullptr: it took all
    int result = 0;    // result of the provider's call that failed
    // The operations of the provider's call; end is nullptr at the end of the list.
    ibv_send_wr *given = nullptr, *end = nullptr;
    bool natively = false; // the call was ibv_wr_complete()

    bool is_good() const { return next == nullptr && result == 0; }
};

// Continues with an operation that was rejected after earlier ones, with error number 0. Posted
// as the first of a list, it is rejected with its error number.
[[gnu::cold, gnu::noinline]] Outcome post_rest(ibv_qp *qp, ibv_send_wr *first);

// The outcome of an ibv_post_send() of a list, which may have stored bad.
//
// siw_post_send() of siw rejects an operation and may still return the 0 of its doorbell: bad
// is that operation. rxe_post_send() and siw_post_send() queue all operations and clear bad
// before their doorbell fails.
inline Outcome plain_outcome(ibv_qp *qp, ibv_send_wr *first, ibv_send_wr *bad, int result) {
    if (result != 0) [[unlikely]]
        return {bad, result, first, nullptr, false};
    if (bad != first && bad != nullptr) [[unlikely]]
        return post_rest(qp, bad);
    return {nullptr};
}

// The largest number of operations for an extended queue pair in one call. It takes all of them
// or none, so they must fit into the empty send queue.
inline uint32_t most_at_once([[maybe_unused]] const rpma_conn &conn) {
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    if (conn.extended != nullptr)
        return std::max(conn.granted().max_send_wr, 1U);
#endif
    return UINT32_MAX;
}

#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
// Posts to an extended queue pair, in one call of the provider unless in_parts is set.
Outcome post_natively(const rpma_conn &conn, ibv_send_wr *first, bool in_parts);
#endif

// is_native: the list needs an extended queue pair.
[[gnu::always_inline]] inline Outcome post_list(const rpma_conn &conn, ibv_send_wr *first,
                                                [[maybe_unused]] bool is_native,
                                                [[maybe_unused]] bool in_parts) {
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    if (is_native) [[unlikely]]
        return post_natively(conn, first, in_parts);
#endif
    ibv_send_wr *bad = first;
    const int result = ibv_post_send(conn.qp, first, &bad);
    return plain_outcome(conn.qp, first, bad, result);
}

// Reports a list that the device did not take without an error, and returns the code. number
// returns the index of a work request in array, also for nullptr, the end of the list.
template <class Number>
[[gnu::cold, gnu::noinline]] int report(const char *function, const char *array,
                                        const rpma_conn &conn, const Outcome &outcome,
                                        const Number &number) {
    const bool is_queued = outcome.next == outcome.end;
    // A plain list is taken up to the rejected operation, a native run as a whole.
    const bool is_whole = is_queued || outcome.natively;
    ibv_send_wr *const first = is_whole ? outcome.given : outcome.next;
    keep_conn(*first, conn);
    const Part part = {array, number(first), is_whole ? number(outcome.end) - 1 : number(first),
                       !is_queued         ? ""
                       : outcome.natively ? " (may be queued)"
                                          : " (queued)"};
    return outcome.natively
               ? refused_natively(function, conn, *first, outcome.end, outcome.result, &part)
               : refused_send(function, *first, outcome.result, &part);
}

} // namespace rpma
