// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// post.cc -- export: rpma_post(), many operations at once

#include <algorithm>

#include "post/list.hh"

using namespace rpma;

namespace {

// The most operations in one call of the provider.
constexpr uint32_t MAX_CHUNK = 16;

// Reports a list that the device did not accept completely. done: in, the number of earlier
// operations that were posted; out, including those of the list. Returns the code.
[[gnu::cold, gnu::noinline]] int report_array(const char *function, const rpma_conn &conn,
                                              const Outcome &outcome, const Entry *first,
                                              const Entry *end, uint32_t &done) {
    const auto index_of = [&](const ibv_send_wr *wr) {
        const auto *entry = wr != nullptr ? reinterpret_cast<const Entry *>(wr) : end;
        return done + static_cast<uint32_t>(entry - first);
    };
    const int code = report_list(function, "work", conn, outcome, index_of);
    done = index_of(outcome.next);
    return code;
}

bool fill_none(const rpma_conn &, Entry &, const rpma_work &, ListFlags &) {
    return false;
}
template <rpma_work_type type>
bool fill_type(const rpma_conn &conn, Entry &entry, const rpma_work &work,
               ListFlags &list_flags) {
    return fill_fast<type>(conn, entry, work, list_flags);
}
constexpr decltype(&fill_none) FILL[] = RPMA_BY_TYPE(fill_none, fill_type);

[[gnu::noinline]] int post_array(rpma_conn *conn, const rpma_work *work, uint32_t count,
                                 uint32_t *posted) {
    static constexpr char function[] = "rpma_post";
    RPMA_REFUSE_IN(function, conn == NULL);
    RPMA_REFUSE_IN(function, work == NULL && count != 0);
    Entry entries[MAX_CHUNK];
    ibv_sge sges[MAX_SGE];
    const uint32_t chunk = std::min(MAX_CHUNK, max_chunk(*conn));
    uint32_t done = 0;
    int code = 0;
    while (done != count) {
        SpareSges spare = {sges, MAX_SGE};
        ListFlags list_flags = 0;
        const rpma_work *next = work + done;
        const rpma_work *const end = next + std::min(count - done, chunk);
        Entry *entry = entries;
        for (; next != end; next++, entry++) {
            entry->wr.sg_list = entry->sges;
            entry->wr.next = &entry[1].wr;
            // Inline for the most frequent type.
            if (next->type == RPMA_WORK_WRITE
                    ? fill_fast<RPMA_WORK_WRITE>(*conn, *entry, *next, list_flags)
                    : has_type(*next) && FILL[next->type](*conn, *entry, *next, list_flags))
                [[likely]]
                continue;
            const auto index = static_cast<uint32_t>(next - work);
            code = fill({function, "work", index, entry != entries}, *conn, *entry, *next,
                        list_flags, &spare);
            if (code != 0)
                break;
        }
        if (entry == entries) [[unlikely]]
            break;
        code = 0; // an operation rejected after earlier ones is validated again as the first
        entry[-1].wr.next = nullptr;
        const Outcome outcome =
            post_list(*conn, &entries[0].wr, list_flags, (list_flags & HAS_MANY_SGES) != 0);
        if (!outcome.is_success()) [[unlikely]] {
            code = report_array(function, *conn, outcome, entries, entry, done);
            break;
        }
        done += static_cast<uint32_t>(entry - entries);
    }
    if (posted != nullptr)
        *posted = done;
    return code;
}

// Slow path after the post of one operation.
[[gnu::cold, gnu::noinline]] int finish_one(const rpma_conn &conn, Entry &entry,
                                            ibv_send_wr *bad, int result, uint32_t *posted) {
    const Outcome outcome = plain_outcome(conn.qp, &entry.wr, bad, result);
    uint32_t done = 0;
    const int code = outcome.is_success()
                         ? 0
                         : report_array("rpma_post", conn, outcome, &entry, &entry + 1, done);
    if (posted != nullptr)
        *posted = outcome.is_success() ? 1 : done;
    return code;
}

// Posts an operation whose entry is filled.
[[gnu::always_inline]] inline int post_one(const rpma_conn &conn, Entry &entry,
                                           uint32_t *posted) {
    entry.wr.sg_list = entry.sges;
    entry.wr.next = nullptr;
    ibv_send_wr *bad = &entry.wr;
    const int result = ibv_post_send(conn.qp, &entry.wr, &bad);
    if (!is_posted(&entry.wr, bad, result)) [[unlikely]]
        return finish_one(conn, entry, bad, result, posted);
    if (posted != nullptr)
        *posted = 1;
    return 0;
}

// Posts one operation of a type.
template <rpma_work_type type>
RPMA_POST int post_type(rpma_conn *conn, const rpma_work *work, uint32_t count,
                        uint32_t *posted) {
    Entry entry;
    ListFlags list_flags = 0;
    if (!fill_fast<type>(*conn, entry, *work, list_flags) || (list_flags & HAS_NATIVE) != 0)
        [[unlikely]]
        return post_array(conn, work, count, posted);
    return post_one(*conn, entry, posted);
}
constexpr decltype(&post_array) POST[] = RPMA_BY_TYPE(post_array, post_type);

} // namespace

RPMA_POST int rpma_post(struct rpma_conn *conn, const struct rpma_work *work, uint32_t count,
                        uint32_t *posted) {
    if (count != 1 || conn == nullptr || work == nullptr || !has_type(*work)) [[unlikely]]
        return post_array(conn, work, count, posted);
    return POST[work->type](conn, work, count, posted);
}
