// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush.hh -- chooses the method of one flush

#pragma once

#include "core/conn.hh"
#include "post/pieces.hh"

namespace rpma {

// The methods that are open to a flush of a region with region_ways; none: it is rejected. The
// first flush of a connection may open them.
inline uint32_t ways_of(const char *function, rpma_conn &conn, uint32_t region_ways,
                        rpma_flush_type type) {
    uint32_t ways = conn.flush.ways();
    if (ways == 0 && goes_any_way(conn.flush.allowed() & region_ways, type))
        ways = conn.flush.open(function);
    return ways & region_ways;
}

// Log message: the offset of an emulated flush is beyond the region, whose size follows.
#define RPMA_BEHIND_REGION(name) \
    name " is %zu, the remote region has %" PRIu64 " bytes; possible: less than that"

// Logs the reason why no method is open to a flush. Returns its code.
[[gnu::cold, gnu::noinline]] int refuse_flush(const Origin &origin, const rpma_conn &conn,
                                              uint32_t region_ways, rpma_flush_type type);

#ifdef RPMA_NATIVE_FLUSH
constexpr uint8_t native_flush_type(rpma_flush_type type) {
    return type == RPMA_FLUSH_TYPE_PERSISTENT ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL;
}
#endif

} // namespace rpma
