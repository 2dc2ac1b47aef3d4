// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush.hh -- which way one flush goes

#pragma once

#include "core/conn.hh"
#include "post/pieces.hh"

namespace rpma {

// The ways that are open to a flush of a region with region_ways; none: it is refused. The
// first flush of a connection that is not refused may open them.
inline uint32_t ways_of(const char *function, rpma_conn &conn, uint32_t region_ways,
                        rpma_flush_type type) {
    uint32_t ways = conn.flush.ways();
    if (ways == 0 && goes_any_way(conn.flush.allowed() & region_ways, type))
        ways = conn.flush.open(function);
    return ways & region_ways;
}

// The offset of an emulated flush that is behind the region, and the size of the region.
#define RPMA_BEHIND_REGION(name) \
    name " is %zu, the remote region has %" PRIu64 " bytes; possible: less than that"

// What is wrong with a flush that may go no way.
[[gnu::cold, gnu::noinline]] int refuse_flush(const Origin &origin, const rpma_conn &conn,
                                              uint32_t region_ways, rpma_flush_type type);

#ifdef RPMA_NATIVE_FLUSH
constexpr uint8_t native_flush_type(rpma_flush_type type) {
    return type == RPMA_FLUSH_TYPE_PERSISTENT ? IBV_FLUSH_PERSISTENT : IBV_FLUSH_GLOBAL;
}
#endif

} // namespace rpma
