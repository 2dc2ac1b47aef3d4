// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush_target.hh -- the destination of the reads of emulated flushes
//
// An emulated flush is an RDMA read after the writes. The data read is discarded, so all
// connections of a peer read into the same 8 bytes.
//
// Thread-safety: acquire, remove_user and try_release may be called from any thread.

#pragma once

#include <memory>
#include <pthread.h>

#include "base/allocation.hh"
#include "core/mr.hh"

struct rpma_peer;

namespace rpma {

class FlushTarget {
  public:
    FlushTarget() = default;
    FlushTarget(const FlushTarget &) = delete;

    // Registers the target unless it is registered already, and adds a user. Returns nullptr on
    // failure: RPMA_E_NOMEM, RPMA_E_PROVIDER.
    const rpma_mr_local *acquire(Call &call, const rpma_peer &peer);
    void remove_user();

    // Deregisters the target. Returns false on failure, also while it has users:
    // RPMA_E_PROVIDER.
    bool try_release(Call &call);

  private:
    struct Unmap {
        void operator()(void *page) const;
    };

    bool prepare(Call &call, const rpma_peer &peer);

    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    unsigned users_ = 0;
    // A separate page that parent and child share: a fork must neither move the page that the
    // device writes to, nor remove other memory from the child.
    std::unique_ptr<void, Unmap> page_;
    std::unique_ptr<rpma_mr_local> mr_;
};

// The use of the target by one connection. The target must outlive it.
using FlushTargetUse = std::unique_ptr<FlushTarget, RemoveUser>;

} // namespace rpma
