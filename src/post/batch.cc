// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.cc -- batches: operations of one connection, linked as the provider requires
//
// The work requests of all entries are linked when the batch is created; only the end of the
// list moves, in a post after the number of operations has changed. A post is a single call of
// the provider. Providers copy the work requests.

#include "post/batch.hh"

#include <cinttypes>

#include "post/full_queue.hh"

using namespace rpma;

rpma_batch::rpma_batch(rpma_conn &connection, uint32_t max_ops, Entries &&entries,
                       std::size_t entry_size)
    : qp(connection.qp),
      conn(connection), linked_{max_ops + 1,
                                is_iwarp(*connection.qp) ? uint32_t{HIDES_REJECTIONS} : 0},
      max_ops_(max_ops), entry_size_(entry_size), entries_(std::move(entries)) {
    for (uint32_t i = 0; i < max_ops; i++) {
        entry(i).wr.sg_list = entry(i).sges;
        entry(i).wr.next = &entry(i + 1).wr;
    }
    reset();
}

std::unique_ptr<rpma_batch> rpma_batch::create(Call &call, rpma_conn &conn, uint32_t max_ops) {
    // No send queue holds more. Linux overcommits memory: the allocation of a wrong, huge size
    // would succeed, and its use would start the OOM killer.
    if (max_ops > conn.peer.device().max_qp_wr) {
        RPMA_FAIL(
            call, RPMA_E_INVAL, 0,
            "max_ops is %u, a send queue of the device has %u at most (max_qp_wr): use several "
            "batches",
            max_ops, conn.peer.device().max_qp_wr);
        return nullptr;
    }
    const std::size_t entry_size = sizeof(Entry) + (conn.max_sge - 1U) * sizeof(ibv_sge);
    // Providers copy whole work requests: unused members must be 0.
    Entries entries(static_cast<Entry *>(std::calloc(std::size_t{max_ops} + 1, entry_size)));
    if (!entries) {
        RPMA_FAIL(call, RPMA_E_NOMEM, 0, "out of memory: max_ops %u, each of %zu bytes",
                  max_ops, entry_size);
        return nullptr;
    }
    return make<rpma_batch>(call, conn, max_ops, std::move(entries), entry_size);
}

void rpma_batch::reset() {
    list_ = {0, 0};
    next_ = 0;
    generation_ = conn.flush.generation();
}

// Chooses the methods of all flushes and atomic writes again. Returns 0, or the code of the
// first one that is no longer allowed: the list must not be posted.
int rpma_batch::choose_methods(const char *function) {
    const uint32_t generation = conn.flush.generation();
    list_.flags &= ~uint32_t{HAS_NATIVE};
    for (uint32_t i = 0; i < list_.size; i++)
        if (const int code =
                choose_method_again({function, "batch", i}, conn, entry(i), list_.flags))
            return code;
    generation_ = generation;
    return 0;
}

RPMA_POST int rpma_batch::post(const char *function, uint32_t *posted) {
    int code = 0;
    if ((list_.flags & HAS_METHODS) != 0 && !has_current_methods())
        code = choose_methods(function);
    if (code != 0 || list_.size == 0) {
        if (posted != nullptr)
            *posted = 0;
        return code;
    }
    const bool is_split =
        (list_.flags & HAS_MANY_SGES) != 0 || list_.size > conn.granted().max_send_wr;
    const Outcome outcome = post_list(conn, &entry(next_).wr, list_.flags, is_split);
    if (!outcome.is_success()) [[unlikely]]
        return record(function, outcome, posted);
    if (posted != nullptr)
        *posted = list_.size - next_;
    set_next(0);
    return 0;
}

int rpma_batch::record(const char *function, const Outcome &outcome, uint32_t *posted) {
    const auto index_of = [&](const ibv_send_wr *wr) {
        if (wr == nullptr)
            return list_.size;
        const auto bytes =
            reinterpret_cast<const char *>(wr) - reinterpret_cast<const char *>(first());
        return static_cast<uint32_t>(static_cast<std::size_t>(bytes) / entry_size_);
    };
    const uint32_t next = index_of(outcome.next);
    if (posted != nullptr)
        *posted = next - next_;
    // The next post begins at the operation where this one ended.
    set_next(next < list_.size ? next : 0);
    return outcome.is_success() ? 0 : report_list(function, "batch", conn, outcome, index_of);
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
    return delete_and_clear(batch_ptr);
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

// Slow path after the post of a whole list.
[[gnu::cold, gnu::noinline]] int record_slow(const char *function, rpma_batch &batch,
                                             ibv_send_wr *bad, int result, uint32_t *posted) {
    const Outcome outcome = plain_outcome(batch.qp, batch.first(), bad, result);
    return batch.record(function, outcome, posted);
}

// Posts a batch whose number of operations has changed.
[[gnu::noinline]] int post_changed(rpma_batch *batch, uint32_t *posted) {
    if (batch->size() == 0)
        return batch->post("rpma_batch_post", posted);
    batch->end_list();
    return rpma_batch_post(batch, posted);
}

// Slow path: operations that no fast path fills. Same parameters as the fast paths, so that
// their tail call moves no register.
[[gnu::noinline]] int add_slow(rpma_batch *batch, const rpma_work *work, Entry *) {
    static constexpr char function[] = "rpma_batch_add";
    RPMA_REFUSE_IN(function, batch == NULL);
    RPMA_REFUSE_IN(function, work == NULL);
    RPMA_REFUSE_AS(function, batch->is_full(),
                   "the batch is full: max_ops is %" PRIu32
                   "; empty it with rpma_batch_reset(), or create one with a larger max_ops",
                   batch->size());
    Entry &entry = batch->next_entry();
    if (const int code =
            build_entry({function}, batch->conn, entry, *work, batch->list_flags(), nullptr))
        return code;
    batch->count_entry();
    return 0;
}

[[gnu::noinline]] int set_slow(rpma_batch *batch, uint32_t index, const rpma_work *work,
                               Entry *) {
    static constexpr char function[] = "rpma_batch_set";
    RPMA_REFUSE_IN(function, batch == NULL);
    RPMA_REFUSE_IN(function, work == NULL);
    RPMA_REFUSE_AS(function, index >= batch->size(),
                   "index is %" PRIu32 ", the batch has %" PRIu32
                   " operations; possible: less than that",
                   index, batch->size());
    // A rejected operation must not change the batch, so it is filled in the spare entry first.
    if (const int code = build_entry({function}, batch->conn, batch->spare(), *work,
                                     batch->list_flags(), nullptr))
        return code;
    return build_entry({function}, batch->conn, batch->entry(index), *work, batch->list_flags(),
                       nullptr);
}

// The fast paths, one for each type.
template <rpma_work_type type>
[[gnu::always_inline]] inline int add_type(rpma_batch *batch, const rpma_work *work,
                                           Entry *entry) {
    if (!encode<type>(batch->conn, *entry, *work, batch->list_flags())) [[unlikely]]
        return add_slow(batch, work, entry);
    batch->count_entry();
    return 0;
}
constexpr decltype(&add_slow) ADD[] = RPMA_BY_TYPE(add_slow, add_type);

template <rpma_work_type type>
int set_type(rpma_batch *batch, uint32_t index, const rpma_work *work, Entry *entry) {
    if (!encode<type>(batch->conn, *entry, *work, batch->list_flags())) [[unlikely]]
        return set_slow(batch, index, work, entry);
    return 0;
}
constexpr decltype(&set_slow) SET[] = RPMA_BY_TYPE(set_slow, set_type);

} // namespace

int rpma_batch_add(struct rpma_batch *batch, const struct rpma_work *work) {
    if (batch == nullptr || work == nullptr || batch->is_full()) [[unlikely]]
        return add_slow(batch, work, nullptr);
    // Inline for the most frequent type.
    if (work->type == RPMA_WORK_WRITE) [[likely]]
        return add_type<RPMA_WORK_WRITE>(batch, work, &batch->next_entry());
    if (!has_type(*work)) [[unlikely]]
        return add_slow(batch, work, nullptr);
    return ADD[work->type](batch, work, &batch->next_entry());
}

int rpma_batch_set(struct rpma_batch *batch, uint32_t index, const struct rpma_work *work) {
    if (batch == nullptr || work == nullptr || index >= batch->size() || !has_type(*work))
        [[unlikely]]
        return set_slow(batch, index, work, nullptr);
    return SET[work->type](batch, index, work, &batch->entry(index));
}

RPMA_POST int rpma_batch_post(struct rpma_batch *batch, uint32_t *posted) {
    RPMA_REFUSE(batch == NULL);
    if (!batch->is_ready()) [[unlikely]] {
        if (!batch->is_ended())
            return post_changed(batch, posted);
        if (!batch->is_plain())
            return batch->post(__func__, posted);
    }
    if (posted != nullptr)
        *posted = batch->size();
    // On the stack, see tuned.hh.
    struct {
        ibv_send_wr *bad;
        rpma_batch *batch;
        uint32_t *posted;
    } saved = {batch->first(), batch, posted};
    const int result = ibv_post_send(batch->qp, batch->first(), &saved.bad);
    if (result == 0) [[likely]]
        return 0;
    return record_slow(__func__, *saved.batch, saved.bad, result, saved.posted);
}
