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
pthread_mutex_t methods_lock = PTHREAD_MUTEX_INITIALIZER;

} // namespace

void FlushMethods::init(const Call &call, rpma_flush_mode mode, bool requires_native,
                        bool has_flush, bool has_atomic_write) {
    mode_ = has_flush ? mode : RPMA_FLUSH_MODE_EMULATED;
    requires_native_ = has_flush && requires_native;
    has_atomic_write_ = has_atomic_write;
    apply(call, false, 0);
}

void FlushMethods::apply(const Call &call, bool direct_write_to_pmem, uint8_t served) {
    const bool is_advertised = served != 0;
    const bool uses_reads =
        mode_ == RPMA_FLUSH_MODE_EMULATED ||
        (mode_ == RPMA_FLUSH_MODE_AUTO && is_advertised && (served & SERVES_FLUSH) == 0);
    if (mode_ == RPMA_FLUSH_MODE_AUTO && uses_reads)
        RPMA_LOG(RPMA_LOG_LEVEL_INFO, call.function(),
                 "the other side has no native flush: flushes are emulated");

    const uint32_t types = mask_of(RPMA_FLUSH_TYPE_VISIBILITY) |
                           (direct_write_to_pmem ? mask_of(RPMA_FLUSH_TYPE_PERSISTENT) : 0);
    // On a native connection, a flush of a region without native flushes is a read, unless the
    // program requires native flushes.
    const FlushMasks masks(uses_reads ? 0 : types, uses_reads || !requires_native_ ? types : 0);
    // An explicit flush mode overrides the peer's capabilities.
    const bool is_active = is_advertised || (mode_ != RPMA_FLUSH_MODE_AUTO && !uses_reads);
    const Lock lock(methods_lock);
    allowed_ = masks;
    active_ = is_active ? masks : FlushMasks();
    has_native_write_ =
        has_atomic_write_ && (!is_advertised || (served & SERVES_ATOMIC_WRITE) != 0);
    generation_++;
}

FlushMasks FlushMethods::activate(const char *function) {
    FlushMasks masks;
    bool was_active;
    {
        const Lock lock(methods_lock);
        masks = allowed_;
        was_active = !active_.exchange(masks).is_empty();
    }
    if (!was_active)
        RPMA_LOG(RPMA_LOG_LEVEL_NOTICE, function,
                 "the other side does not advertise its flush method: %s",
                 mode() == RPMA_FLUSH_MODE_NATIVE
                     ? "a native flush is tried; if it fails, set RPMA_FLUSH=emulated or "
                       "RPMA_FLUSH_MODE_EMULATED here"
                     : "an emulated flush is tried; if it fails, register the region there "
                       "with RPMA_MR_USAGE_READ_SRC, too");
    return masks;
}

rpma_flush_mode FlushMethods::mode() const {
    return allowed().has_any_native() ? RPMA_FLUSH_MODE_NATIVE : RPMA_FLUSH_MODE_EMULATED;
}

} // namespace rpma
