// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// post.cc -- export: rpma_post(), many operations at once

#include <algorithm>

#include "post/full_queue.hh"
#include "post/list.hh"

using namespace rpma;

namespace {

// Reports a list that the device did not accept completely, and returns the code. done is the
// number of posted operations, to which this function adds those of the list.
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

bool encode_none(const rpma_conn &, Entry &, const rpma_work &, ListFlags &) {
    return false;
}
template <rpma_work_type type>
bool encode_type(const rpma_conn &conn, Entry &entry, const rpma_work &work,
                 ListFlags &list_flags) {
    return encode<type>(conn, entry, work, list_flags);
}
constexpr decltype(&encode_none) ENCODE[] = RPMA_BY_TYPE(encode_none, encode_type);

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
                    ? encode<RPMA_WORK_WRITE>(*conn, *entry, *next, list_flags)
                    : has_type(*next) && ENCODE[next->type](*conn, *entry, *next, list_flags))
                [[likely]]
                continue;
            const auto index = static_cast<uint32_t>(next - work);
            code = build_entry({function, "work", index, entry != entries}, *conn, *entry,
                               *next, list_flags, &spare);
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

// One operation, and what is needed after its post, see tuned.hh.
struct Single {
    const rpma_conn *conn;
    uint32_t *posted;
    ibv_send_wr *bad;
    Entry entry;
};

[[gnu::cold, gnu::noinline]] int report_single(Single &single, int result) {
    const Outcome outcome = {single.bad, result, &single.entry.wr};
    uint32_t done = 0;
    const int code = report_array("rpma_post", *single.conn, outcome, &single.entry,
                                  &single.entry + 1, done);
    if (single.posted != nullptr)
        *single.posted = done;
    return code;
}

[[gnu::noinline]] int fail_single(Single &single, int result) {
    const ibv_send_wr &wr = single.entry.wr;
    if (single.bad != &wr || !is_quiet_full_queue("rpma_post", *single.conn, wr, result))
        return report_single(single, result);
    if (single.posted != nullptr)
        *single.posted = 0;
    return RPMA_E_AGAIN;
}

int post_none(rpma_conn *conn, const rpma_work *work, uint32_t *posted) {
    return post_array(conn, work, 1, posted);
}

// Posts a filled operation.
[[gnu::always_inline]] inline int post_single(Single &single, rpma_conn *conn,
                                              uint32_t *posted) {
    ibv_send_wr &wr = single.entry.wr;
    wr.next = nullptr;
    single.bad = &wr;
    single.conn = conn;
    single.posted = posted;
    // A provider that returns 0 has accepted a single operation, unlike a list
    // (plain_outcome()).
    const int result = ibv_post_send(conn->qp, &wr, &single.bad);
    if (result != 0) [[unlikely]]
        return fail_single(single, result);
    if (single.posted != nullptr)
        *single.posted = 1;
    return 0;
}

// Posts one operation of a type with a list of SGEs, none of which is empty.
template <rpma_work_type type>
[[gnu::noinline]] RPMA_POST int post_sgl(rpma_conn *conn, const rpma_work *work,
                                         uint32_t *posted) {
    constexpr WorkKind kind = WORK_KINDS[type];
    const rpma_mr_remote *const remote = work->remote;
    if (work->nsge - 1 >= sge_limit(*conn, type).max || work->sgl == nullptr ||
        invalid_bits(kind, *work) != 0 || (kind.has_remote && remote == nullptr)) [[unlikely]]
        return post_array(conn, work, 1, posted);
    Single single;
    ibv_sge sges[MAX_SGE];
    encode_request<type>(single.entry.wr, static_cast<int>(work->nsge), *work, remote);
    single.entry.wr.sg_list = sges;
    const rpma_sge *sge = work->sgl, *const end = sge + work->nsge;
    uint64_t room = UINT32_MAX; // for further bytes
    for (ibv_sge *to = sges; sge != end; sge++, to++) {
        if (sge->mr == nullptr || sge->len - 1 >= room) [[unlikely]]
            return post_array(conn, work, 1, posted);
        *to = make_sge(*sge->mr, sge->offset, sge->len);
        room -= sge->len;
    }
    return post_single(single, conn, posted);
}

// Posts one operation of a type.
template <rpma_work_type type>
[[gnu::always_inline]] inline RPMA_POST int post_type(rpma_conn *conn, const rpma_work *work,
                                                      uint32_t *posted) {
    Single single;
    ibv_send_wr &wr = single.entry.wr;
    ListFlags list_flags = 0;
    if (!encode<type>(*conn, single.entry, *work, list_flags) || (list_flags & HAS_NATIVE) != 0)
        [[unlikely]]
        return WORK_KINDS[type].is_special ? post_array(conn, work, 1, posted)
                                           : post_sgl<type>(conn, work, posted);
    wr.sg_list = single.entry.sges;
    return post_single(single, conn, posted);
}
constexpr decltype(&post_none) POST[] = RPMA_BY_TYPE(post_none, post_type);

} // namespace

RPMA_POST int rpma_post(struct rpma_conn *conn, const struct rpma_work *work, uint32_t count,
                        uint32_t *posted) {
    if (count != 1) [[unlikely]]
        return post_array(conn, work, count, posted);
    if (conn == nullptr || work == nullptr) [[unlikely]]
        return post_none(conn, work, posted);
    // Inline for the most frequent type.
    if (work->type == RPMA_WORK_WRITE) [[likely]]
        return post_type<RPMA_WORK_WRITE>(conn, work, posted);
    if (!has_type(*work)) [[unlikely]]
        return post_none(conn, work, posted);
    return POST[work->type](conn, work, posted);
}
