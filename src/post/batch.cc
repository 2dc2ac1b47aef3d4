// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.cc -- batches and their exports

#include "post/batch.hh"

#include <cinttypes>

#include "post/list.hh"
#include "post/tuned.hh"

using namespace rpma;

rpma_batch::rpma_batch(rpma_conn &connection, uint32_t max_ops, Slots &&slots,
                       std::size_t slot_size)
    : qp(connection.qp), conn(connection), max_ops_(max_ops), slot_size_(slot_size),
      slots_(std::move(slots)) {
    for (uint32_t i = 0; i <= max_ops; i++)
        slot(i).wr.sg_list = slot(i).sges;
    reset();
}

std::unique_ptr<rpma_batch> rpma_batch::create(Call &call, rpma_conn &conn, uint32_t max_ops) {
    // No send queue takes more. The memory of a wrong number would be granted, and end in the
    // kernel's search for a process to kill.
    if (max_ops > conn.max_qp_wr()) {
        RPMA_FAIL(
            call, RPMA_E_INVAL, 0,
            "a batch of %u operations (max_ops): a send queue of the device has at most %u "
            "(max_qp_wr)",
            max_ops, conn.max_qp_wr());
        return nullptr;
    }
    const std::size_t slot_size = sizeof(Slot) + (conn.max_sge - 1U) * sizeof(ibv_sge);
    // Providers copy a work request whole: what nobody sets is 0.
    Slots slots(static_cast<Slot *>(std::calloc(std::size_t{max_ops} + 1, slot_size)));
    if (!slots) {
        RPMA_FAIL(call, RPMA_E_NOMEM, 0, "out of memory: %u operations of %zu bytes", max_ops,
                  slot_size);
        return nullptr;
    }
    return make<rpma_batch>(call, conn, max_ops, std::move(slots), slot_size);
}

void rpma_batch::reset() {
    for (uint32_t i = 0; i < max_ops_; i++)
        slot(i).wr.next = &slot(i + 1).wr;
    free_ = &slot(0);
    limit_ = &slot(max_ops_);
    is_ready = is_ended_ = false;
    next_ = 0;
    kinds = {};
    generation_ = conn.flush.generation();
}

// Ends the list, and with it the room for additions.
void rpma_batch::end() {
    is_ended_ = true;
    ready_size = size();
    if (ready_size > 0)
        slot(ready_size - 1).wr.next = nullptr;
    limit_ = free_;
}

// Opens a list that a post has ended.
Slot *rpma_batch::open(const char *function) {
    is_ready = is_ended_ = false;
    limit_ = &slot(max_ops_);
    if (free_ == limit_) {
        Call call(function);
        RPMA_FAIL(call, RPMA_E_INVAL, 0,
                  "the batch is full: it has room for %" PRIu32 " operations", max_ops_);
        return nullptr;
    }
    if (size() > 0)
        slot(size() - 1).wr.next = &free_->wr;
    return free_;
}

// Chooses the ways of all flushes and atomic writes again. 0, or the code of the first one that
// is not allowed any more: then nothing of the list may go.
int rpma_batch::choose_ways(const char *function) {
    const uint32_t generation = conn.flush.generation();
    kinds.has_natives = false;
    for (uint32_t i = 0; i < size(); i++)
        if (const int code = choose_way({function, "batch", i}, conn, slot(i), kinds))
            return code;
    generation_ = generation;
    return 0;
}

int rpma_batch::post(const char *function, uint32_t *posted) {
    if (generation_ != conn.flush.generation() && kinds.has_ways)
        if (const int code = choose_ways(function)) {
            if (posted != nullptr)
                *posted = 0;
            return code;
        }
    if (!is_ended_)
        end();
    if (posted != nullptr)
        *posted = ready_size - next_;
    if (next_ == ready_size)
        return 0;
    const Outcome outcome = post_list(conn, &slot(next_).wr, kinds);
    if (!outcome.is_good()) [[unlikely]]
        return settle(function, outcome, posted);
    next_ = 0;
    // What depends on the connection has to be looked at each time.
    is_ready = !kinds.has_ways;
    return 0;
}

int rpma_batch::settle(const char *function, const Outcome &outcome, uint32_t *posted) {
    const auto place = [&](const ibv_send_wr *wr) {
        return wr != nullptr ? number(wr) : ready_size;
    };
    const int code = report(function, "batch", conn, outcome, place);
    const uint32_t next = place(outcome.next);
    if (posted != nullptr)
        *posted = next - next_;
    // The next post begins where this one ended.
    next_ = next < ready_size ? next : 0;
    is_ready = false;
    return code;
}

int rpma_batch_new(struct rpma_conn *conn, uint32_t max_ops, struct rpma_batch **batch_ptr) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(max_ops == 0);
    RPMA_REFUSE(batch_ptr == NULL);
    Call call(__func__);
    return call.deliver(rpma_batch::create(call, *conn, max_ops), batch_ptr);
}

int rpma_batch_delete(struct rpma_batch **batch_ptr) {
    RPMA_REFUSE(batch_ptr == NULL);
    return discard(batch_ptr);
}

int rpma_batch_reset(struct rpma_batch *batch) {
    RPMA_REFUSE(batch == NULL);
    batch->reset();
    return 0;
}

int rpma_batch_get_size(const struct rpma_batch *batch, uint32_t *size, uint32_t *room) {
    RPMA_REFUSE(batch == NULL);
    if (size != nullptr)
        *size = batch->size();
    if (room != nullptr)
        *room = batch->room();
    return 0;
}

RPMA_POST int rpma_batch_add(struct rpma_batch *batch, const struct rpma_work *work) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(work == NULL);
    Slot *const slot = batch->free_slot(__func__);
    if (slot == nullptr) [[unlikely]]
        return RPMA_E_INVAL;
    const int code =
        fill(__func__, nullptr, batch->conn, *slot, *work, 0, batch->kinds, nullptr);
    if (code == 0) [[likely]]
        batch->add_slot();
    return code;
}

RPMA_POST int rpma_batch_set(struct rpma_batch *batch, uint32_t index,
                             const struct rpma_work *work) {
    RPMA_REFUSE(batch == NULL);
    RPMA_REFUSE(work == NULL);
    RPMA_REFUSE(index >= batch->size());
    // What is refused changes nothing, so an operation is tried elsewhere first.
    if (!is_usual_write(*work)) [[unlikely]]
        if (const int code = fill(__func__, nullptr, batch->conn, batch->scratch(), *work, 0,
                                  batch->kinds, nullptr))
            return code;
    batch->is_ready &= !batch->kinds.has_ways;
    return fill(__func__, nullptr, batch->conn, batch->slot(index), *work, 0, batch->kinds,
                nullptr);
}

RPMA_POST int rpma_batch_post(struct rpma_batch *batch, uint32_t *posted) {
    RPMA_REFUSE(batch == NULL);
    if (!batch->is_ready) [[unlikely]]
        return batch->post(__func__, posted);
    if (posted != nullptr)
        *posted = batch->ready_size;
    ibv_send_wr *const first = batch->first();
    ibv_send_wr *bad = first;
    const int result = ibv_post_send(batch->qp, first, &bad);
    const Outcome outcome = plain_outcome(first, bad, result);
    return outcome.is_good() ? 0 : batch->settle(__func__, outcome, posted);
}
