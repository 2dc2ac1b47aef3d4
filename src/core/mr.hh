// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mr.hh -- memory regions: local ones are registered, remote ones are known by descriptor
//
// Thread-safety: immutable once made, so any thread may use a region for operations.

#pragma once

#include "base/memory.hh"
#include "verbs/objects.hh"
#include "wire/descriptor.hh"

namespace rpma {

// Bytes that an emulated flush reads, if the region has them.
inline constexpr uint32_t FLUSH_READ_SIZE = 8;

} // namespace rpma

struct rpma_mr_local : rpma::Allocated {
    // natively and served as below.
    rpma_mr_local(rpma::Mr &&region, int usage, uint8_t natively, uint8_t served);

    rpma::Region describe() const;
    // RPMA_E_INVAL, RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    void advise(rpma::Call &call, std::size_t offset, uint32_t len, int advice,
                uint32_t flags) const;

    // The region stays when the provider refuses. Returns false on failure: RPMA_E_PROVIDER.
    bool try_release(rpma::Call &call) { return region.try_release(call); }

    // Every operation needs the first two, which are copies from the region.
    uint64_t addr;
    uint32_t lkey;
    uint16_t usage;   // RPMA_MR_USAGE_*
    uint8_t natively; // flush types of usage that the device serves natively here
    uint8_t served;   // by the device: SERVES_*
    rpma::Mr region;
};

struct rpma_mr_remote : rpma::Allocated {
    // natively: the flush types (usage bits) that may be asked for natively. nullptr:
    // RPMA_E_INVAL, RPMA_E_NOMEM.
    static std::unique_ptr<rpma_mr_remote> create(rpma::Call &call, const rpma::Region &region,
                                                  uint8_t natively);

    rpma_mr_remote(const rpma::Region &region, uint8_t natively);

    uint64_t addr;
    uint32_t rkey;
    uint32_t flush_ways; // that the region allows, see FlushWay
    uint64_t size;
    uint64_t whole_reads; // offsets below it have FLUSH_READ_SIZE bytes behind them
    uint16_t usage;       // RPMA_MR_USAGE_*
};
