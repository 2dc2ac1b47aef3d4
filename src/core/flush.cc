// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush.cc -- the flush methods of a connection, from the capabilities of both sides

#include "core/flush.hh"

#include "base/lock.hh"
#include "wire/descriptor.hh"

namespace rpma {

namespace {

// If two configurations are applied at once, one of them takes effect as a whole. One lock
// serves all connections: each needs it once or twice in its lifetime.
pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

} // namespace

void FlushWays::begin(const Call &call, rpma_flush_mode mode, bool is_demand, bool has_flush,
                      bool has_atomic_write) {
    mode_ = has_flush ? mode : RPMA_FLUSH_MODE_EMULATED;
    is_demand_ = has_flush && is_demand;
    has_atomic_write_ = has_atomic_write;
    apply(call, false, 0);
}

void FlushWays::apply(const Call &call, bool direct_write_to_pmem, uint8_t served) {
    const bool states = served != 0;
    const bool reads =
        mode_ == RPMA_FLUSH_MODE_EMULATED ||
        (mode_ == RPMA_FLUSH_MODE_AUTO && states && (served & SERVES_FLUSH) == 0);
    if (mode_ == RPMA_FLUSH_MODE_AUTO && reads)
        RPMA_LOG(RPMA_LOG_LEVEL_INFO, call.function(),
                 "the other side has no native flush: flushes are emulated");

    const uint32_t types = set_of(RPMA_FLUSH_TYPE_VISIBILITY) |
                           (direct_write_to_pmem ? set_of(RPMA_FLUSH_TYPE_PERSISTENT) : 0);
    uint32_t ways = reads ? types << BY_READ : types << NATIVELY;
    if (!reads && !is_demand_)
        ways |= types << FALL_BACK;
    // An explicit flush mode overrides the peer's capabilities.
    const bool is_open = states || (mode_ != RPMA_FLUSH_MODE_AUTO && !reads);
    const Lock lock(changing);
    allowed_ = ways;
    open_ = is_open ? ways : 0;
    writes_natively_ = has_atomic_write_ && (!states || (served & SERVES_ATOMIC_WRITE) != 0);
    generation_++;
}

uint32_t FlushWays::open(const char *function) {
    uint32_t ways, before;
    {
        const Lock lock(changing);
        ways = allowed_;
        before = open_.exchange(ways);
    }
    if (before == 0)
        RPMA_LOG(RPMA_LOG_LEVEL_NOTICE, function,
                 "the other side does not state how it serves flushes: %s",
                 mode() == RPMA_FLUSH_MODE_NATIVE
                     ? "a native flush is tried; if it fails, set RPMA_FLUSH=emulated or "
                       "RPMA_FLUSH_MODE_EMULATED here"
                     : "an emulated flush is tried; if it fails, register the region there "
                       "with RPMA_MR_USAGE_READ_SRC, too");
    return ways;
}

rpma_flush_mode FlushWays::mode() const {
    const uint32_t natively = 0xffU << NATIVELY;
    return (allowed() & natively) != 0 ? RPMA_FLUSH_MODE_NATIVE : RPMA_FLUSH_MODE_EMULATED;
}

} // namespace rpma
