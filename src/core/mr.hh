// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mr.hh -- memory regions: local ones are registered, remote ones are known by descriptor
//
// Thread-safety: immutable once made, so any thread may use a region for operations.

#pragma once

#include "base/memory.hh"
#include "verbs/objects.hh"

namespace rpma {

// Where the bits RPMA_MR_USAGE_FLUSH_TYPE_* of flushes stand in a word, by the way these
// flushes go: as a read or as the device's own operation.
enum FlushWay : unsigned { FLUSH_BY_READ = 0, FLUSH_NATIVELY = 8 };

} // namespace rpma

struct rpma_mr_local : rpma::Allocated {
    rpma_mr_local(rpma::Mr &&region, int usage);

    // Writes MR_DESCRIPTOR_SIZE bytes.
    void describe(unsigned char *descriptor) const;
    // RPMA_E_INVAL, RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    void advise(rpma::Call &call, std::size_t offset, uint32_t len, int advice,
                uint32_t flags) const;

    // The region stays when the provider refuses. False: RPMA_E_PROVIDER.
    bool try_release(rpma::Call &call) { return region.try_release(call); }

    // What every operation needs stands first, copied from the region.
    uint64_t addr;
    uint32_t lkey;
    int usage;
    rpma::Mr region;
};

struct rpma_mr_remote : rpma::Allocated {
    // descriptor has at least MR_DESCRIPTOR_SIZE bytes. nullptr: RPMA_E_INVAL, RPMA_E_NOMEM.
    static std::unique_ptr<rpma_mr_remote> from_descriptor(rpma::Call &call,
                                                           const unsigned char *descriptor);

    uint64_t addr;
    uint32_t rkey;
    uint32_t flush_usage; // RPMA_MR_USAGE_*, once for each FlushWay
    uint64_t size;

    uint32_t usage() const { return flush_usage & 0xff; }
};
