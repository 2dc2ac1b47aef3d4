// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch_post.cc -- export: the post of a batch

#include <algorithm>
#include <utility>

#include "api/post.hh"
#include "core/batch.hh"

using namespace rpma;

namespace {

// Such an operation goes by ibv_post_send() even in a list with native ones:
// ibv_wr_set_sge_list() of rxe takes the length of the first element for that of all
// (wr_set_sge_list() of rdma-core 56; pull request 1744 mends it).
bool has_list(const ibv_send_wr &wr) {
    return wr.num_sge > 1;
}

// Where a run of operations ends that an extended queue pair gets at once.
ibv_send_wr *end_of_run(ibv_send_wr *wr, const ibv_send_wr *end) {
    while (wr != end && !has_list(*wr))
        wr = wr->next;
    return wr;
}

#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
// Gives one operation to an extended queue pair, between ibv_wr_start() and ibv_wr_complete().
void give(ibv_qp_ex *qpx, const ibv_send_wr &wr) {
    const uint64_t remote_addr = wr.wr.rdma.remote_addr;
    const uint32_t rkey = wr.wr.rdma.rkey;
    [[maybe_unused]] const auto &slot = reinterpret_cast<const Slot &>(wr);
    qpx->wr_id = wr.wr_id;
    qpx->wr_flags = wr.send_flags; // rxe tells inline data by the flag alone
    switch (static_cast<int>(wr.opcode)) {
#ifdef RPMA_NATIVE_FLUSH
    case IBV_WR_FLUSH:
        ibv_wr_flush(qpx, rkey, remote_addr, slot.flush_length, slot.flush_types,
                     IBV_FLUSH_RANGE);
        return;
#endif
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    case IBV_WR_ATOMIC_WRITE:
        ibv_wr_atomic_write(qpx, rkey, remote_addr, slot.value);
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
    case IBV_WR_SEND:
        ibv_wr_send(qpx);
        break;
    default:
        ibv_wr_send_imm(qpx, wr.imm_data);
    }
    if ((wr.send_flags & IBV_SEND_INLINE) != 0 && wr.num_sge == 1)
        ibv_wr_set_inline_data(qpx, reinterpret_cast<void *>(wr.sg_list->addr),
                               wr.sg_list->length);
    else
        ibv_wr_set_sge_list(qpx, static_cast<std::size_t>(wr.num_sge), wr.sg_list);
}

// The operations up to end. A provider that cannot take an operation takes none since
// ibv_wr_start().
[[gnu::always_inline]] inline int post_extended(rpma_batch &batch, const ibv_send_wr *end) {
    ibv_qp_ex *const qpx = batch.conn.extended;
    ibv_wr_start(qpx);
    for (const ibv_send_wr *wr = batch.pending; wr != end; wr = wr->next)
        give(qpx, *wr);
    return ibv_wr_complete(qpx);
}

// The first operations, of one element at most.
int post_others(rpma_batch &batch) {
    ibv_send_wr *const end = end_of_run(batch.pending, nullptr);
    const int result = post_extended(batch, end);
    if (result == 0)
        batch.pending = end;
    return result;
}

// The first operation, which has several elements and so is not native.
int post_alone(rpma_batch &batch) {
    ibv_send_wr *const wr = batch.pending;
    ibv_send_wr *const behind = std::exchange(wr->next, nullptr);
    const int result = ibv_post_send(batch.qp, wr, &batch.pending);
    wr->next = behind;
    if (result == 0 || batch.pending == nullptr) // cleared: only the doorbell failed
        batch.pending = behind;
    return result;
}

[[gnu::noinline]] int post_runs(rpma_batch &batch) {
    while (batch.pending != nullptr) {
        ibv_send_wr *const first = batch.pending;
        const int result = has_list(*first) ? post_alone(batch) : post_others(batch);
        if (result != 0) {
            batch.given = first;
            return result;
        }
    }
    batch.restart();
    return 0;
}

// One call of the provider, unless there are operations of several elements.
[[gnu::noinline]] int post_natively(rpma_batch &batch) {
    return batch.has_list ? post_runs(batch) : post_extended(batch, nullptr);
}
#endif

// Yields the error of the provider, which has stored the first operation that it did not take
// in batch.pending.
int post_list(rpma_batch &batch) {
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    if (batch.is_native) [[unlikely]]
        return post_natively(batch);
#endif
    return ibv_post_send(batch.qp, batch.pending, &batch.pending);
}

// Of the operations from one on.
uint64_t most_inline_bytes(const ibv_send_wr *wr, const ibv_send_wr *end) {
    uint64_t most = 0;
    for (; wr != end; wr = wr->next)
        most = std::max(most, inline_bytes(wr->send_flags, wr->sg_list, wr->num_sge));
    return most;
}

// A call of the provider that failed.
struct Failed {
    bool natively;    // whether it was ibv_wr_complete()
    ibv_send_wr *end; // of the operations that it was given; they begin with batch.given
    int result;
};

// Reports the operations from wr on that were refused, or queued together.
[[gnu::cold, gnu::noinline]] int report(const char *function, const rpma_batch &batch,
                                        const Failed &failed, ibv_send_wr wr,
                                        const Part &part) {
    if (!failed.natively) {
        wr.tso.hdr = batch.qp; // where post_send() keeps it
        return post_send_failed(function, wr, failed.result, &part);
    }
    Call call(function);
    RPMA_FAIL_ADVISING(
        call, RPMA_E_PROVIDER, post_error(failed.result),
        send_advice(failed.result, *batch.qp, most_inline_bytes(batch.given, failed.end)).chars,
        "%sibv_wr_complete(first: opcode=%s, wr_id=0x%" PRIx64 ")", part_text(&part).chars,
        opcode_text(wr.opcode).chars, wr.wr_id);
    return call.finish();
}

// Reports what went wrong, and lets the next post begin where this one ended.
int post_failed(const char *function, rpma_batch &batch, const Failed &failed) {
    const bool is_queued = batch.pending == failed.end;
    // A list is taken up to the operation that is refused, a run is refused as a whole.
    const bool is_all = is_queued || failed.natively;
    const ibv_send_wr *const first = is_all ? batch.given : batch.pending;
    const uint32_t number = batch.number(first);
    const Part part = {number, is_all ? batch.number(failed.end) - 1 : number, batch.size(),
                       !is_queued        ? ""
                       : failed.natively ? " (may be queued)"
                                         : " (queued)"};
    const int code = report(function, batch, failed, *first, part);
    batch.given = batch.pending;
    if (batch.pending_count() == 0)
        batch.restart();
    return code;
}

// What failed; batch.pending becomes the first operation that is not in the queue.
Failed what_failed(rpma_batch &batch, int result) {
    ibv_send_wr *const behind = &batch.free->wr;
    // rxe_post_send() and siw_post_send() queue everything, and then their doorbell fails.
    if (batch.pending == nullptr)
        batch.pending = behind;
    if (!batch.is_native)
        return {false, behind, result};
    if (has_list(*batch.given))
        return {false, batch.given->next, result};
    // Nothing is posted twice. wr_complete() of rxe publishes the operations before it rings
    // the doorbell, whose error is that of a write(); its builders refuse with ENOSPC.
    ibv_send_wr *const end = end_of_run(batch.given, behind);
    if (!is_full(result))
        batch.pending = end;
    return {true, end, result};
}

// The end of a post that failed, that began behind the first operation, or whose provider
// stored something in batch.pending.
[[gnu::noinline]] int finish_post(const char *function, rpma_batch &batch, uint32_t *posted,
                                  int result) {
    if (result == 0 && batch.is_taken()) [[likely]] {
        batch.restart();
        return 0;
    }
    const Failed failed = what_failed(batch, result);
    if (posted != nullptr)
        *posted -= batch.pending_count();
    return post_failed(function, batch, failed);
}

} // namespace

int rpma_batch_post(struct rpma_batch *batch, uint32_t *posted) {
    RPMA_REFUSE(batch == NULL);
    if (posted != nullptr)
        *posted = batch->pending_count();
    if (batch->last == nullptr) [[unlikely]]
        return 0;
    batch->last->wr.next = nullptr;
    const int result = post_list(*batch);
    batch->last->wr.next = &batch->free->wr;
    if (result == 0 && batch->pending == &batch->first()->wr) [[likely]]
        return 0;
    return finish_post(__func__, *batch, posted, result);
}
