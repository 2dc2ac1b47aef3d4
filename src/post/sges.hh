// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// sges.hh -- scatter/gather lists, and the call site of an operation in the log

#pragma once

#include <cinttypes>

#include "base/refuse.hh"
#include "post/work_request.hh"
#include "verbs/text.hh"

namespace rpma {

// Names an operation in the log: as an element of a caller's array, or alone.
struct CallSite {
    const char *function;
    const char *array = nullptr; // name of the caller's array, or nullptr
    uint32_t index = 0;
    // Earlier operations are posted first. It is validated again, and logged, once it is the
    // first of a call: the queue may be full before, which is a would-block result and no
    // failure.
    bool is_later = false;

    // "work[2]: ", or "".
    Text prefix() const;
};

// Logs that an operation is not valid. RPMA_E_INVAL.
[[gnu::cold, gnu::noinline, gnu::format(printf, 2, 3)]] int
refuse_operation(const CallSite &site, const char *format, ...);

// The largest number of SGEs of an operation, and the values that the log shows.
struct SgeLimit {
    uint32_t max;
    uint32_t requested; // with the setter; max may be less, for reads
    const char *setter; // its name
};

struct SgeList {
    const rpma_sge *sgl;
    uint32_t nsge;
};

// Returns the SGEs of an operation: its list, or the single one in local if the list is empty.
// sgl is nullptr if they are rejected, which is logged.
inline SgeList choose_sges(const CallSite &site, const rpma_sge &local, const rpma_sge *sgl,
                           uint32_t nsge) {
    if (nsge != 0) {
        if (sgl == nullptr)
            refuse_operation(site, "sgl is NULL, nsge is %" PRIu32, nsge);
        return {sgl, nsge};
    }
    if (sgl != nullptr) {
        refuse_operation(site, "sgl != NULL && nsge == 0");
        return {};
    }
    if (local.mr == nullptr && (local.offset | local.len) != 0) {
        refuse_operation(site, RPMA_NO_MEMORY, "local.mr", local.offset, local.len);
        return {};
    }
    return {&local, 1};
}

// Checks the SGEs and writes those that are not empty to sges. Returns their number, or -1 if
// one is not valid, which is logged.
int fill_sges(const CallSite &site, SgeList list, const SgeLimit &limit, ibv_sge *sges);

} // namespace rpma

#define RPMA_REFUSE_OPERATION(site, condition) \
    RPMA_REFUSE_OPERATION_AS(site, condition, #condition)
#define RPMA_REFUSE_OPERATION_AS(site, condition, ...)        \
    do {                                                      \
        if (condition) [[unlikely]]                           \
            return rpma::refuse_operation(site, __VA_ARGS__); \
    } while (false)
#define RPMA_REFUSE_RESERVED(site, member)                                                \
    RPMA_REFUSE_OPERATION_AS(site, member != 0, #member " is 0x%" PRIx64 "; possible: 0", \
                             uint64_t{member})
