// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush.hh -- how the flushes and atomic writes of a connection go: by the device's own
// operation, or by a read or write that stands for it
//
// A set of flush types is a number with a bit for each enum rpma_flush_type. A word of ways
// holds three such sets, one for each way. A connection has a word of the ways that its flushes
// may go, and a remote region has one of the ways that it allows: a flush may go where both
// agree.
//
// Thread-safety: any thread may ask; apply() may run beside them.

#pragma once

#include <atomic>

#include "base/call.hh"

namespace rpma {

// Where the set of a way begins in a word of ways.
enum FlushWay : unsigned {
    BY_READ = 0,  // on a connection that flushes by reading
    NATIVELY = 8, // by the device's own operation
    FALL_BACK =
        16 // by reading, on a connection that flushes natively where the region allows it
};

constexpr uint32_t set_of(rpma_flush_type type) {
    return 1U << type;
}
// The set that stands in usage bits RPMA_MR_USAGE_FLUSH_TYPE_*.
constexpr uint32_t flush_set(unsigned usage) {
    return ((usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT) != 0
                ? set_of(RPMA_FLUSH_TYPE_PERSISTENT)
                : 0) |
           ((usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY) != 0
                ? set_of(RPMA_FLUSH_TYPE_VISIBILITY)
                : 0);
}
// The ways of a region with that usage, of whose flush types those of natively (usage bits) may
// be asked for natively.
constexpr uint32_t region_ways(unsigned usage, unsigned natively) {
    const uint32_t all = flush_set(usage), native = flush_set(usage & natively);
    return all << BY_READ | native << NATIVELY | (all & ~native) << FALL_BACK;
}
// Whether a flush of this type may go that way; ways is what connection and region agree on.
constexpr bool goes(uint32_t ways, FlushWay way, rpma_flush_type type) {
    return (ways >> (way + static_cast<unsigned>(type)) & 1) != 0;
}
constexpr bool goes_any_way(uint32_t ways, rpma_flush_type type) {
    return goes(ways, BY_READ, type) || goes(ways, NATIVELY, type) ||
           goes(ways, FALL_BACK, type);
}

class FlushWays {
  public:
    // mode is how the connection is to flush, EMULATED if its queue pair has no flush.
    // is_demand: the program asked for NATIVE and wants nothing else. has_flush and
    // has_atomic_write are what the queue pair can do by itself. The other side states nothing
    // yet.
    void begin(const Call &call, rpma_flush_mode mode, bool is_demand, bool has_flush,
               bool has_atomic_write);

    // Goes by what the other side states: direct write to PMem, and what its device serves
    // (SERVES_*, 0 if it does not say).
    void apply(const Call &call, bool direct_write_to_pmem, uint8_t served);

    // The ways that are open. None is before the first flush of a connection whose other side
    // does not state what it serves: open() opens them.
    uint32_t ways() const { return open_.load(std::memory_order_relaxed); }
    // All ways, open or not.
    uint32_t allowed() const { return allowed_.load(std::memory_order_relaxed); }
    // Opens the ways and logs what is tried without a statement. Returns them.
    uint32_t open(const char *function);

    // Whether atomic writes are the device's own operation.
    bool writes_natively() const { return writes_natively_.load(std::memory_order_relaxed); }
    // Another number after each apply(): what was described before may go another way now. What
    // is asked for after a new number is what came with it, or newer.
    uint32_t generation() const { return generation_.load(std::memory_order_acquire); }
    // Whether flushes may go by reading, now or after apply().
    bool may_read() const { return !is_demand_; }
    // EMULATED or NATIVE, as the connection flushes now.
    rpma_flush_mode mode() const;

  private:
    std::atomic<uint32_t> open_ = 0;
    std::atomic<uint32_t> allowed_ = 0;
    std::atomic<uint32_t> generation_ = 0;
    std::atomic<bool> writes_natively_ = false;
    rpma_flush_mode mode_ : 8 = RPMA_FLUSH_MODE_AUTO;
    bool is_demand_ = false;
    bool has_atomic_write_ = false;
};

} // namespace rpma
