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
    bad = first();
    for (uint32_t i = 0; i <= max_ops; i++)
        slot(i).wr.sg_list = slot(i).sges;
    for (uint32_t i = 0; i < max_ops; i++)
        slot(i).wr.next = &slot(i + 1).wr;
    reset();
}

std::unique_ptr<rpma_batch> rpma_batch::create(Call &call, rpma_conn &conn, uint32_t max_ops) {
    // No send queue holds more. An allocation of a wrong, huge size would succeed, and its use
    // would start the kernel's OOM killer.
    if (max_ops > conn.device->max_qp_wr) {
        RPMA_FAIL(
            call, RPMA_E_INVAL, 0,
            "max_ops is %u, a send queue of the device has %u at most (max_qp_wr): use several "
            "batches",
            max_ops, conn.device->max_qp_wr);
        return nullptr;
    }
    const std::size_t slot_size = sizeof(Slot) + (conn.max_sge - 1U) * sizeof(ibv_sge);
    // Providers copy whole work requests: members that are not filled must be 0.
    Slots slots(static_cast<Slot *>(std::calloc(std::size_t{max_ops} + 1, slot_size)));
    if (!slots) {
        RPMA_FAIL(call, RPMA_E_NOMEM, 0, "out of memory: max_ops %u, each of %zu bytes",
                  max_ops, slot_size);
        return nullptr;
    }
    return make<rpma_batch>(call, conn, max_ops, std::move(slots), slot_size);
}

void rpma_batch::reset() {
    reopen();
    free_ = &slot(0);
    ready = NOT_READY;
    next_ = 0;
    kinds = {};
    generation_ = conn.flush.generation();
}

// Ends the list after the last operation: additions have to open() it again.
void rpma_batch::end() {
    is_ended_ = true;
    ready_size = size();
    if (ready_size > 0)
        slot(ready_size - 1).wr.next = nullptr;
    limit_ = free_;
}

// Links the last operation to the free slot again.
void rpma_batch::reopen() {
    if (is_ended_ && ready_size > 0)
        slot(ready_size - 1).wr.next = &slot(ready_size).wr;
    is_ended_ = false;
    limit_ = &slot(max_ops_);
}

bool rpma_batch::open(const char *function) {
    reopen();
    ready = NOT_READY;
    if (is_open())
        return true;
    Call call(function);
    RPMA_FAIL(call, RPMA_E_INVAL, 0,
              "the batch is full: max_ops is %" PRIu32
              "; begin anew with rpma_batch_reset(), or give rpma_batch_new() more",
              max_ops_);
    return false;
}

// Chooses the flush method of all flushes and atomic writes again. 0, or the code of the first
// one that is not allowed any more: then no operation of the list may be posted.
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
    if (kinds.has_ways && !has_current_ways())
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
    const bool in_parts = kinds.has_pieces || ready_size > most_at_once(conn);
    const Outcome outcome = post_list(conn, &slot(next_).wr, kinds.has_natives, in_parts);
    if (!outcome.is_good()) [[unlikely]]
        return settle(function, outcome, posted);
    next_ = 0;
    ready = kinds.has_natives ? NOT_READY : kinds.has_ways ? UNLESS_WAYS_CHANGE : READY;
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
    // The next post begins at the operation where this one ended.
    next_ = next < ready_size ? next : 0;
    ready = NOT_READY;
    return code;
}

int rpma_batch::settle_ready(const char *function, int result) {
    const Outcome outcome = plain_outcome(qp, first(), std::exchange(bad, first()), result);
    return outcome.is_good() ? 0 : settle(function, outcome, given);
}

int rpma_batch_new(struct rpma_conn *conn, uint32_t max_ops, struct rpma_batch **batch_ptr) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE_VALUE(__func__, max_ops == 0, max_ops, "1 and more");
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

namespace {

// Slow path: everything but a simple write to an open batch.
[[gnu::noinline]] int add_otherwise(rpma_batch *batch, const rpma_work *work) {
    static constexpr char function[] = "rpma_batch_add";
    RPMA_REFUSE_IN(function, batch == NULL);
    RPMA_REFUSE_IN(function, work == NULL);
    if (!batch->is_open() && !batch->open(function))
        return RPMA_E_INVAL;
    const int code =
        fill({function}, batch->conn, batch->free_slot(), *work, batch->kinds, nullptr);
    if (code == 0)
        batch->add_slot();
    return code;
}

[[gnu::noinline]] int set_otherwise(rpma_batch *batch, uint32_t index, const rpma_work *work) {
    static constexpr char function[] = "rpma_batch_set";
    RPMA_REFUSE_IN(function, batch == NULL);
    RPMA_REFUSE_IN(function, work == NULL);
    RPMA_REFUSE_AS(function, index >= batch->size(),
                   "index is %" PRIu32 ", the batch has %" PRIu32
                   " operations; possible: less than that",
                   index, batch->size());
    // A rejected operation must not change the batch, so it is filled in the scratch slot
    // first.
    if (const int code =
            fill({function}, batch->conn, batch->scratch(), *work, batch->kinds, nullptr))
        return code;
    batch->ready = rpma_batch::NOT_READY;
    return fill({function}, batch->conn, batch->slot(index), *work, batch->kinds, nullptr);
}

} // namespace

RPMA_POST int rpma_batch_add(struct rpma_batch *batch, const struct rpma_work *work) {
    if (batch == nullptr || work == nullptr || !batch->is_open() || !is_usual_write(*work))
        [[unlikely]]
        return add_otherwise(batch, work);
    fill_usual_write(batch->free_slot(), *work);
    batch->add_slot();
    return 0;
}

RPMA_POST int rpma_batch_set(struct rpma_batch *batch, uint32_t index,
                             const struct rpma_work *work) {
    if (batch == nullptr || work == nullptr || !batch->has(index) || !is_usual_write(*work))
        [[unlikely]]
        return set_otherwise(batch, index, work);
    fill_usual_write(batch->slot(index), *work);
    return 0;
}

RPMA_POST int rpma_batch_post(struct rpma_batch *batch, uint32_t *posted) {
    RPMA_REFUSE(batch == NULL);
    if (!batch->is_ready()) [[unlikely]]
        return batch->post(__func__, posted);
    if (posted != nullptr)
        *posted = batch->ready_size;
    batch->given = posted;
    const int result = ibv_post_send(batch->qp, batch->first(), &batch->bad);
    if (result == 0 && batch->bad == batch->first()) [[likely]]
        return 0;
    return batch->settle_ready(__func__, result);
}
