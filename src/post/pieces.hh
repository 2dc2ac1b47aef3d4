// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// pieces.hh -- local memory in several pieces, and how the log names an operation of an array

#pragma once

#include <cinttypes>

#include "base/refuse.hh"
#include "post/work_request.hh"
#include "verbs/text.hh"

namespace rpma {

// An operation as the log names it: of a caller's array, or by itself.
struct Origin {
    const char *function;
    const char *array = nullptr; // name of the caller's array, or nullptr
    uint32_t index = 0;          // in the array
    // Operations before it go first. If it is refused, it comes again as the first, and only
    // then the log says so: they may find no room, which is an answer and no failure.
    bool is_behind = false;

    // "work[2]: ", or "".
    Text prefix() const;
};

// Logs that an operation is not valid. RPMA_E_INVAL.
[[gnu::cold, gnu::noinline, gnu::format(printf, 2, 3)]] int
refuse_operation(const Origin &origin, const char *format, ...);

// How many pieces an operation may have, and what the log says about it.
struct MostPieces {
    uint32_t most;
    uint32_t asked;      // by the setting; most is less where the device reads into fewer
    const char *setting; // the function that asks for more
};

struct Pieces {
    const rpma_sge *sgl;
    uint32_t nsge;
};

// The pieces of an operation: those of its list, or the one at local if the list is empty. sgl
// is nullptr if they are refused, which is logged.
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

// Checks the pieces and writes those that have bytes to sges. Their number; -1: a
// piece is not valid, which is logged.
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
