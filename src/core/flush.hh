// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush.hh -- the method of a connection's flushes and atomic writes: the device's native
// operation, or an emulation by a read or a write
//
// Thread-safety: any thread may read, also while another one calls apply().

#pragma once

#include <atomic>

#include "base/call.hh"

namespace rpma {

// The flush types (enum rpma_flush_type) that may use each of the two methods, as masks. Those
// of a connection depend on its mode and the capabilities of both sides, those of a remote
// region on its flush types.
class FlushMasks {
  public:
    FlushMasks() = default; // an entry of an array is not initialised
    constexpr FlushMasks(uint32_t native, uint32_t read) : bits_(native << NATIVE | read) {}

    constexpr bool has_native([[maybe_unused]] rpma_flush_type type) const {
#ifdef RPMA_NATIVE_FLUSH
        return (bits_ >> (NATIVE + static_cast<unsigned>(type)) & 1) != 0;
#else
        return false;
#endif
    }
    constexpr bool has_read(rpma_flush_type type) const {
        return (bits_ >> static_cast<unsigned>(type) & 1) != 0;
    }
    constexpr bool has_any_native() const {
        return bits_ >> NATIVE != 0;
    }
    constexpr bool is_empty() const {
        return bits_ == 0;
    }
    constexpr uint32_t bits() const {
        return bits_; // for tracing
    }
    friend constexpr FlushMasks operator&(FlushMasks a, FlushMasks b) {
        a.bits_ &= b.bits_;
        return a;
    }

  private:
    static constexpr unsigned NATIVE = 8; // the first bit; the mask of reads begins at bit 0

    uint32_t bits_;
};

constexpr uint32_t mask_of(rpma_flush_type type) {
    return 1U << type;
}
// The mask of the usage bits RPMA_MR_USAGE_FLUSH_TYPE_*.
constexpr uint32_t flush_mask(unsigned usage) {
    return ((usage & RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT) != 0
                ? mask_of(RPMA_FLUSH_TYPE_PERSISTENT)
                : 0) |
           ((usage & RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY) != 0
                ? mask_of(RPMA_FLUSH_TYPE_VISIBILITY)
                : 0);
}

enum class FlushMethod { NATIVE, READ, NONE };

// The method of a flush, from the masks that the connection and the region have in common;
// native is preferred. A connection in the mode EMULATED has no native flushes, and a
// connection that requires NATIVE has no reads.
constexpr FlushMethod choose_method(FlushMasks masks, rpma_flush_type type) {
    if (masks.has_native(type))
        return FlushMethod::NATIVE;
    return masks.has_read(type) ? FlushMethod::READ : FlushMethod::NONE;
}

class FlushMethods {
  public:
    // mode is the flush mode of the connection, EMULATED if its queue pair has no native flush.
    // requires_native: the program requires NATIVE. has_flush and has_atomic_write are the
    // native operations of the queue pair. The other side has not advertised any capability
    // yet.
    void init(const Call &call, rpma_flush_mode mode, bool requires_native, bool has_flush,
              bool has_atomic_write);

    // Applies the capabilities that the other side advertised: direct write to PMem, and the
    // operations that its device serves (SERVES_*, 0 if not advertised).
    void apply(const Call &call, bool direct_write_to_pmem, uint8_t served);

    // The methods that flushes use. None is active before the first flush of a connection whose
    // other side does not advertise its capabilities: activate() makes them active.
    FlushMasks masks() const { return active_.load(std::memory_order_relaxed); }
    // All methods, active or not.
    FlushMasks allowed() const { return allowed_.load(std::memory_order_relaxed); }
    // The method of a flush of a region with these masks. The first flush of a connection may
    // activate the methods.
    FlushMethod choose(const char *function, FlushMasks region, rpma_flush_type type) {
        FlushMasks own = masks();
        if (own.is_empty() && choose_method(allowed() & region, type) != FlushMethod::NONE)
            own = activate(function);
        return choose_method(own & region, type);
    }

    // Returns true if atomic writes are a native operation.
    bool has_native_write() const { return has_native_write_.load(std::memory_order_relaxed); }
    // Changed by apply(), because operations that are already filled may then need another
    // method. A caller that reads a new number also reads the methods of the same or of a later
    // apply().
    uint32_t generation() const { return generation_.load(std::memory_order_acquire); }
    // Returns true if flushes may use reads, now or after apply().
    bool can_read() const { return !requires_native_; }
    // The present mode of the connection: EMULATED or NATIVE.
    rpma_flush_mode mode() const;

  private:
    // Activates and returns the allowed methods, and logs that the other side has not
    // advertised them.
    FlushMasks activate(const char *function);

    std::atomic<FlushMasks> active_ = FlushMasks();
    std::atomic<FlushMasks> allowed_ = FlushMasks();
    std::atomic<uint32_t> generation_ = 0;
    std::atomic<bool> has_native_write_ = false;
    rpma_flush_mode mode_ : 8 = RPMA_FLUSH_MODE_AUTO;
    bool requires_native_ = false;
    bool has_atomic_write_ = false;
};

} // namespace rpma
