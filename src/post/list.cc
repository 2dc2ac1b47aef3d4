// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// list.cc -- lists for extended queue pairs, and failures of lists

#include "post/list.hh"
#include "post/full_queue.hh"

namespace rpma {

Outcome post_rest(ibv_qp *qp, ibv_send_wr *first) {
    ibv_send_wr *bad = first;
    const int result = ibv_post_send(qp, first, &bad);
    return plain_outcome(qp, first, bad, result);
}

int post_slow(const CallSite &site, rpma_conn *conn, rpma_work &work, int flags) {
    RPMA_REFUSE_IN(site, conn == NULL);
    RPMA_REFUSE_AS(site, flags == 0, RPMA_NO_FLAGS);
    const auto accepted = static_cast<int>(~WORK_KINDS[work.type].refused_flags);
    work.flags = (flags & accepted) | RPMA_F_COMPLETION_ON_ERROR;
    Entry entry;
    entry.wr.next = nullptr;
    entry.wr.sg_list = entry.sges;
    ListFlags list_flags = 0;
    if (const int code = build_entry(site, *conn, entry, work, list_flags, nullptr))
        return code;
    const Outcome outcome = post_list(*conn, &entry.wr, list_flags, false);
    if (outcome.is_success())
        return 0;
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    if (outcome.is_native)
        return fail_one_native(site.function, conn->extended, entry.wr.opcode,
                               entry.wr.wr.rdma.remote_addr, work.flush_len, outcome.result);
#endif
    return fail_send(site.function, *conn, rejected_send(entry.wr), outcome.result);
}

} // namespace rpma

#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)

namespace rpma {

namespace {

// An operation with several SGEs uses ibv_post_send() even in a list with native operations:
// ibv_wr_set_sge_list() of rxe uses the length of the first SGE for all SGEs (wr_set_sge_list()
// of rdma-core 56; pull request 1744 fixes it).
bool has_many_sges(const ibv_send_wr &wr) {
    return wr.num_sge > 1;
}

// Passes one operation to an extended queue pair, between ibv_wr_start() and ibv_wr_complete().
[[gnu::always_inline]] inline void append_native(ibv_qp_ex *qpx, const ibv_send_wr &wr) {
    const uint64_t remote_addr = wr.wr.rdma.remote_addr;
    const uint32_t rkey = wr.wr.rdma.rkey;
    [[maybe_unused]] const auto &entry = reinterpret_cast<const Entry &>(wr);
    qpx->wr_id = wr.wr_id;
    qpx->wr_flags = wr.send_flags; // the flag alone marks inline data on rxe
    switch (static_cast<int>(wr.opcode)) {
#ifdef RPMA_NATIVE_FLUSH
    case IBV_WR_FLUSH:
        ibv_wr_flush(qpx, rkey, remote_addr, entry.flush_len,
                     native_flush_type(static_cast<rpma_flush_type>(entry.flush_type)),
                     IBV_FLUSH_RANGE);
        return;
#endif
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    case IBV_WR_ATOMIC_WRITE:
        ibv_wr_atomic_write(qpx, rkey, remote_addr, &entry.value);
        return;
#endif
    case IBV_WR_RDMA_READ:
        ibv_wr_rdma_read(qpx, rkey, remote_addr);
        break;
    case IBV_WR_RDMA_WRITE:
        ibv_wr_rdma_write(qpx, rkey, remote_addr);
        break;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        ibv_wr_rdma_write_imm(qpx, rkey, remote_addr, wr.imm_data);
        break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        ibv_wr_atomic_fetch_add(qpx, wr.wr.atomic.rkey, remote_addr, wr.wr.atomic.compare_add);
        break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        ibv_wr_atomic_cmp_swp(qpx, wr.wr.atomic.rkey, remote_addr, wr.wr.atomic.compare_add,
                              wr.wr.atomic.swap);
        break;
    case IBV_WR_SEND:
        ibv_wr_send(qpx);
        break;
    case IBV_WR_SEND_WITH_IMM:
        ibv_wr_send_imm(qpx, wr.imm_data);
        break;
    default:
        __builtin_unreachable(); // WORK_KINDS has no other opcode
    }
    if ((wr.send_flags & IBV_SEND_INLINE) != 0 && wr.num_sge == 1)
        ibv_wr_set_inline_data(qpx, reinterpret_cast<void *>(wr.sg_list->addr),
                               wr.sg_list->length);
    else
        ibv_wr_set_sge_list(qpx, static_cast<std::size_t>(wr.num_sge), wr.sg_list);
}

// Posts the operations from first up to end as a whole. wr_complete() of rxe publishes them
// before it rings the doorbell, a write() that fails with ENOMEM if the kernel has no memory
// (ib_uverbs_post_send() of Linux). The builders of rxe, the only provider of native
// operations, fail with ENOSPC if the queue is full (check_qp_queue_full()). After any other
// error the operations may be queued, and count as posted.
[[gnu::always_inline]] inline Outcome post_native_run(const rpma_conn &conn, ibv_send_wr *first,
                                                      ibv_send_wr *end) {
    ibv_qp_ex *const qpx = conn.extended;
    ibv_wr_start(qpx);
    for (const ibv_send_wr *wr = first; wr != end; wr = wr->next)
        append_native(qpx, *wr);
    const int result = ibv_wr_complete(qpx);
    return {result == ENOSPC ? first : end, result, first, end, true};
}

// Posts one operation with several SGEs, which is not native.
Outcome post_multi_sge(const rpma_conn &conn, ibv_send_wr *wr) {
    ibv_send_wr *const rest = std::exchange(wr->next, nullptr);
    ibv_send_wr *bad = wr;
    const int result = ibv_post_send(conn.qp, wr, &bad);
    wr->next = rest;
    const bool is_posted = result == 0 || bad == nullptr;
    return {is_posted ? rest : wr, result, wr, rest, false};
}

// Native runs alternate with multi-SGE requests. No run is longer than the queue.
[[gnu::noinline]] Outcome post_runs(const rpma_conn &conn, ibv_send_wr *first) {
    Outcome outcome = {first};
    while (outcome.next != nullptr && outcome.result == 0) {
        ibv_send_wr *const begin = outcome.next;
        ibv_send_wr *end = begin;
        for (uint32_t room = max_chunk(conn);
             room > 0 && end != nullptr && !has_many_sges(*end); room--)
            end = end->next;
        outcome =
            end == begin ? post_multi_sge(conn, begin) : post_native_run(conn, begin, end);
    }
    return outcome;
}

} // namespace

RPMA_POST Outcome post_native_list(const rpma_conn &conn, ibv_send_wr *first, bool is_split) {
    return is_split ? post_runs(conn, first) : post_native_run(conn, first, nullptr);
}

} // namespace rpma

#endif
