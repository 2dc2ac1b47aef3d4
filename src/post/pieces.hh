// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// pieces.hh -- scatter/gather lists, and the name of an array's operation in the log

#pragma once

#include <cinttypes>

#include "base/refuse.hh"
#include "post/work_request.hh"
#include "verbs/text.hh"

namespace rpma {

// Names an operation in the log: as an element of a caller's array, or alone.
struct Origin {
    const char *function;
    const char *array = nullptr; // name of the caller's array, or nullptr
    uint32_t index = 0;
    // Earlier operations are posted first. It is validated again, and logged, once it is the
    // first of a call: the queue may be full before, which is a would-block result and no
    // failure.
    bool is_behind = false;

    // "work[2]: ", or "".
    Text prefix() const;
};

// Logs that an operation is not valid. RPMA_E_INVAL.
[[gnu::cold, gnu::noinline, gnu::format(printf, 2, 3)]] int
refuse_operation(const Origin &origin, const char *format, ...);

// The largest number of SGEs of an operation, and the values that the log shows.
struct MostPieces {
    uint32_t most;
    uint32_t asked;      // by the setting; most may be less, for reads
    const char *setting; // name of the setter
};

struct Pieces {
    const rpma_sge *sgl;
    uint32_t nsge;
};

// Returns the SGEs of an operation: its list, or the single one in local if the list is empty.
// sgl is nullptr if they are rejected, which is logged.
inline Pieces choose_pieces(const Origin &origin, const rpma_sge &local, const rpma_sge *sgl,
                            uint32_t nsge) {
    if (nsge != 0) {
        if (sgl == nullptr)
            refuse_operation(origin, "sgl is NULL, nsge is %" PRIu32, nsge);
        return {sgl, nsge};
    }
    if (sgl != nullptr) {
        refuse_operation(origin, "sgl != NULL && nsge == 0");
        return {};
    }
    if (local.mr == nullptr && (local.offset | local.len) != 0) {
        refuse_operation(origin, RPMA_NO_MEMORY, "local.mr", local.offset, local.len);
        return {};
    }
    return {&local, 1};
}

// Checks the SGEs and writes those that are not empty to sges. Returns their number, or -1 if
// one is not valid, which is logged.
int gather(const Origin &origin, Pieces pieces, const MostPieces &limit, ibv_sge *sges);

} // namespace rpma

#define RPMA_REFUSE_OPERATION(origin, condition) \
    RPMA_REFUSE_OPERATION_AS(origin, condition, #condition)
#define RPMA_REFUSE_OPERATION_AS(origin, condition, ...)        \
    do {                                                        \
        if (condition) [[unlikely]]                             \
            return rpma::refuse_operation(origin, __VA_ARGS__); \
    } while (false)
#define RPMA_REFUSE_RESERVED(origin, member)                                                \
    RPMA_REFUSE_OPERATION_AS(origin, member != 0, #member " is 0x%" PRIx64 "; possible: 0", \
                             uint64_t{member})
