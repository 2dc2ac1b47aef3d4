// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// works.cc -- export: rpma_post(), many operations at once

#include <algorithm>

#include "post/list.hh"
#include "post/tuned.hh"

using namespace rpma;

namespace {

// The operations of one call of the provider.
constexpr uint32_t MOST_AT_ONCE = 16;

// Reports a list that the device did not take completely. taken: in, the number of earlier
// operations that were posted; out, including those of the list. Returns the code.
[[gnu::cold, gnu::noinline]] int settle(const char *function, const rpma_conn &conn,
                                        const Outcome &outcome, const Slot *first,
                                        const Slot *end, uint32_t &taken) {
    const auto number = [&](const ibv_send_wr *wr) {
        const auto *slot = wr != nullptr ? reinterpret_cast<const Slot *>(wr) : end;
        return taken + static_cast<uint32_t>(slot - first);
    };
    const int code = report(function, "work", conn, outcome, number);
    taken = number(outcome.next);
    return code;
}

// The same for one operation: the slow path after its post.
[[gnu::cold, gnu::noinline]] int settle_one(const rpma_conn &conn, Slot &slot, ibv_send_wr *bad,
                                            int result, uint32_t *posted) {
    const Outcome outcome = plain_outcome(conn.qp, &slot.wr, bad, result);
    uint32_t taken = 0;
    const int code =
        outcome.is_good() ? 0 : settle("rpma_post", conn, outcome, &slot, &slot + 1, taken);
    if (posted != nullptr)
        *posted = outcome.is_good() ? 1 : taken;
    return code;
}

// Posts one valid operation, which fill() writes to its slot.
template <class Fill>
[[gnu::always_inline]] inline int post_one(const rpma_conn &conn, const rpma_work &work,
                                           uint32_t *posted, const Fill &fill) {
    Slot slot;
    slot.wr.sg_list = slot.sges;
    slot.wr.next = nullptr;
    fill(slot, work);
    ibv_send_wr *bad = &slot.wr;
    const int result = ibv_post_send(conn.qp, &slot.wr, &bad);
    if (result != 0 || bad != &slot.wr) [[unlikely]]
        return settle_one(conn, slot, bad, result, posted);
    if (posted != nullptr)
        *posted = 1;
    return 0;
}

[[gnu::noinline]] int post_array(rpma_conn *conn, const rpma_work *work, uint32_t count,
                                 uint32_t *posted) {
    static constexpr char function[] = "rpma_post";
    RPMA_REFUSE_IN(function, conn == NULL);
    RPMA_REFUSE_IN(function, work == NULL && count != 0);
    Slot slots[MOST_AT_ONCE];
    ibv_sge elements[MOST_PIECES];
    const uint32_t at_once = std::min(MOST_AT_ONCE, most_at_once(*conn));
    uint32_t taken = 0;
    int code = 0;
    while (taken != count) {
        SpareElements spare = {elements, MOST_PIECES};
        Kinds kinds;
        const rpma_work *next = work + taken;
        const rpma_work *const end = next + std::min(count - taken, at_once);
        Slot *slot = slots;
        for (; next != end; next++, slot++) {
            slot->wr.sg_list = slot->sges;
            slot->wr.next = &slot[1].wr;
            if (is_usual_write(*next)) [[likely]] {
                fill_usual_write(*slot, *next);
                continue;
            }
            const auto index = static_cast<uint32_t>(next - work);
            code = fill({function, "work", index, slot != slots}, *conn, *slot, *next, kinds,
                        &spare);
            if (code != 0)
                break;
        }
        if (slot == slots) [[unlikely]]
            break;
        code = 0; // an operation rejected after earlier ones is validated again as the first
        slot[-1].wr.next = nullptr;
        const Outcome outcome =
            post_list(*conn, &slots[0].wr, kinds.has_natives, kinds.has_pieces);
        if (!outcome.is_good()) [[unlikely]] {
            code = settle(function, *conn, outcome, slots, slot, taken);
            break;
        }
        taken += static_cast<uint32_t>(slot - slots);
    }
    if (posted != nullptr)
        *posted = taken;
    return code;
}

} // namespace

// Posts one operation. Same signature as rpma_post(), so the tail call spills nothing; a
// function local to this file would lose a parameter.
namespace rpma {

using Post = int(rpma_conn *conn, const rpma_work *work, uint32_t count, uint32_t *posted);
Post post_write, post_atomic;

[[gnu::noinline]] RPMA_POST int post_write(rpma_conn *conn, const rpma_work *work, uint32_t,
                                           uint32_t *posted) {
    return post_one(*conn, *work, posted, fill_usual_write);
}

[[gnu::noinline]] RPMA_POST int post_atomic(rpma_conn *conn, const rpma_work *work,
                                            uint32_t count, uint32_t *posted) {
    if (!is_usual_atomic(*conn, *work)) [[unlikely]]
        return post_array(conn, work, count, posted);
    return post_one(*conn, *work, posted, fill_usual_atomic);
}

} // namespace rpma

int rpma_post(struct rpma_conn *conn, const struct rpma_work *work, uint32_t count,
              uint32_t *posted) {
    if (count != 1)
        return post_array(conn, work, count, posted);
    if (conn == nullptr || work == nullptr) [[unlikely]]
        return post_array(conn, work, count, posted);
    if (is_usual_write(*work))
        return post_write(conn, work, count, posted);
    if (is_atomic(*work))
        return post_atomic(conn, work, count, posted);
    return post_array(conn, work, count, posted);
}
