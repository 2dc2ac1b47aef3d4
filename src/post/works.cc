// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// works.cc -- export: rpma_post(), many operations at once

#include <algorithm>

#include "post/list.hh"
#include "post/tuned.hh"

using namespace rpma;

namespace {

// What a call of the provider gets at once.
constexpr uint32_t MOST_AT_ONCE = 16;

struct Array {
    const char *function;
    rpma_conn &conn;
    const rpma_work *work;
    uint32_t count;
    uint32_t done; // operations that the device took
};

// Posts as many of the next operations as go at once, up to one that is not valid. 0: go on.
[[gnu::always_inline]] inline int post_some(Array &array) {
    Slot slots[MOST_AT_ONCE];
    ibv_sge elements[MOST_PIECES];
    SpareElements spare = {elements, MOST_PIECES};
    Kinds kinds;
    const uint32_t wanted = std::min(array.count - array.done, MOST_AT_ONCE);
    uint32_t filled = 0;
    int code = 0;
    for (; filled < wanted; filled++) {
        Slot &slot = slots[filled];
        slot.wr.sg_list = slot.sges;
        slot.wr.next = &slots[filled + 1].wr;
        const uint32_t index = array.done + filled;
        code = fill(array.function, array.work, array.conn, slot, array.work[index], index,
                    kinds, &spare);
        if (code != 0) [[unlikely]]
            break;
    }
    if (filled == 0) [[unlikely]]
        return code;
    slots[filled - 1].wr.next = nullptr;
    const Outcome outcome = post_list(array.conn, &slots[0].wr, kinds);
    if (outcome.is_good()) [[likely]] {
        array.done += filled;
        return code == NO_ELEMENTS ? 0 : code;
    }
    const auto number = [&](const ibv_send_wr *wr) {
        const auto *slot = reinterpret_cast<const Slot *>(wr);
        return array.done + (slot != nullptr ? static_cast<uint32_t>(slot - slots) : filled);
    };
    code = report(array.function, "work", array.conn, outcome, number);
    array.done = number(outcome.next);
    return code;
}

} // namespace

RPMA_POST int rpma_post(struct rpma_conn *conn, const struct rpma_work *work, uint32_t count,
                        uint32_t *posted) {
    RPMA_REFUSE(conn == NULL);
    RPMA_REFUSE(work == NULL && count != 0);
    Array array = {__func__, *conn, work, count, 0};
    int code = 0;
    while (code == 0 && array.done < count)
        code = post_some(array);
    if (posted != nullptr)
        *posted = array.done;
    return code;
}
