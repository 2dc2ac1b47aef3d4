// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush.hh -- the methods of a connection's flushes and atomic writes: the device's native
// operation, or an emulation by a read or a write
//
// A set of flush types is a mask with a bit for each enum rpma_flush_type. A word of ways holds
// three such sets, one for each flush method. A connection has a word of the methods that it
// supports, and a remote region one of the methods that it allows: a flush uses a method that
// both contain.
//
// Thread-safety: any thread may read, also while another one calls apply().

#pragma once

#include <atomic>

#include "base/call.hh"

namespace rpma {

// The position of each method's set in a word of ways.
enum FlushWay : unsigned {
    BY_READ = 0,  // read, on a connection in the mode EMULATED
    NATIVELY = 8, // native operation of the device
    FALL_BACK =
        16 // read, as a fallback on a connection in the mode NATIVE, where the region allows it
};

constexpr uint32_t set_of(rpma_flush_type type) {
    return 1U << type;
}
// The set of the usage bits RPMA_MR_USAGE_FLUSH_TYPE_*.
constexpr uint32_t flush_set(unsigned usage) {
    return ((usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT) != 0
                ? set_of(RPMA_FLUSH_TYPE_PERSISTENT)
                : 0) |
           ((usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY) != 0
                ? set_of(RPMA_FLUSH_TYPE_VISIBILITY)
                : 0);
}
// The methods of a region with these usage bits; natively: the usage bits of the flush types
// that may use the native method.
constexpr uint32_t region_ways(unsigned usage, unsigned natively) {
    const uint32_t all = flush_set(usage), native = flush_set(usage & natively);
    return all << BY_READ | native << NATIVELY | (all & ~native) << FALL_BACK;
}
// Is true if a flush of this type may use the method; ways is the intersection of connection
// and region. The caller has rejected unknown types.
constexpr bool goes(uint32_t ways, FlushWay way, rpma_flush_type type) {
    return (ways >> (way + static_cast<unsigned>(type)) & 1) != 0;
}
constexpr bool goes_any_way(uint32_t ways, rpma_flush_type type) {
    return goes(ways, BY_READ, type) || goes(ways, NATIVELY, type) ||
           goes(ways, FALL_BACK, type);
}

class FlushWays {
  public:
    // mode is the flush mode of the connection, EMULATED if its queue pair has no native flush.
    // is_demand: the program requires NATIVE. has_flush and has_atomic_write are the native
    // operations of the queue pair. The other side has not advertised any capability yet.
    void begin(const Call &call, rpma_flush_mode mode, bool is_demand, bool has_flush,
               bool has_atomic_write);

    // Applies the capabilities that the other side advertised: direct write to PMem, and the
    // operations that its device serves (SERVES_*, 0 if not advertised).
    void apply(const Call &call, bool direct_write_to_pmem, uint8_t served);

    // The methods that are open. None is open before the first flush of a connection whose
    // other side does not advertise its capabilities: open() opens them.
    uint32_t ways() const { return open_.load(std::memory_order_relaxed); }
    // All methods, open or not.
    uint32_t allowed() const { return allowed_.load(std::memory_order_relaxed); }
    // Opens the methods, logs those that are tried without an advertised capability, and
    // returns all.
    uint32_t open(const char *function);

    // Is true if atomic writes are a native operation.
    bool writes_natively() const { return writes_natively_.load(std::memory_order_relaxed); }
    // apply() changes this number: the methods of operations that were filled before may have
    // changed. A caller that has read a new number reads the methods of that apply() or of a
    // later one.
    uint32_t generation() const { return generation_.load(std::memory_order_acquire); }
    // Is true if flushes may use reads, now or after apply().
    bool may_read() const { return !is_demand_; }
    // The present mode of the connection: EMULATED or NATIVE.
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
