// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mr.hh -- memory regions: local ones are registered, remote ones are created from a descriptor
//
// Thread-safety: immutable once created, so any thread may use a region for operations.

#pragma once

#include "base/allocation.hh"
#include "core/flush.hh"
#include "verbs/objects.hh"
#include "wire/descriptor.hh"

namespace rpma {

// The size of the read of an emulated flush, if the region is large enough.
inline constexpr uint32_t FLUSH_READ_SIZE = 8;

} // namespace rpma

struct rpma_mr_local : rpma::Allocated {
    // native_flush_usage and served: see the members.
    rpma_mr_local(rpma::Mr &&region, int usage, uint8_t native_flush_usage, uint8_t served);

    rpma::Region describe() const;
    // RPMA_E_INVAL, RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    void advise(rpma::Call &call, std::size_t offset, uint32_t len, int advice,
                uint32_t flags) const;

    // Returns false if the provider refuses, and the region is unchanged: RPMA_E_PROVIDER.
    bool try_release(rpma::Call &call) { return region.try_release(call); }

    // Every operation reads the first two members, which are copies of members of the ibv_mr.
    uint64_t addr;
    uint32_t lkey;
    uint16_t usage;             // RPMA_MR_USAGE_*
    uint8_t native_flush_usage; // of the flush types that this side's device serves natively
    uint8_t served;             // SERVES_*: operations that the device serves natively
    rpma::Mr region;
};

struct rpma_mr_remote : rpma::Allocated {
    // native_flush_usage: the usage bits of the flush types that may be native. nullptr:
    // RPMA_E_INVAL, RPMA_E_NOMEM.
    static std::unique_ptr<rpma_mr_remote> create(rpma::Call &call, const rpma::Region &region,
                                                  uint8_t native_flush_usage);

    rpma_mr_remote(const rpma::Region &region, uint8_t native_flush_usage);

    uint64_t addr;
    uint32_t rkey;
    rpma::FlushMasks flush; // the methods that the region allows
    uint64_t size;
    uint64_t full_read_limit; // FLUSH_READ_SIZE bytes of the region follow each offset below
    uint16_t usage;           // RPMA_MR_USAGE_*
};
