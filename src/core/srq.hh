// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// srq.hh -- a shared receive queue, with or without a receive CQ of its own
//
// Thread-safety: receives may be posted from any thread.

#pragma once

#include "base/memory.hh"
#include "core/config.hh"
#include "core/cq.hh"

struct rpma_peer;

struct rpma_srq : rpma::Allocated {
    // Returns nullptr on failure: RPMA_E_INVAL, RPMA_E_NOMEM, RPMA_E_PROVIDER.
    static std::unique_ptr<rpma_srq> create(rpma::Call &call, const rpma_peer &peer,
                                            const rpma_srq_cfg &cfg);

    rpma_srq(rpma::Srq &&queue, uint32_t size, uint32_t max_sge)
        : queue_(std::move(queue)), size_(size), max_sge_(max_sge) {}

    ibv_srq *queue() const { return queue_.get(); }
    uint32_t rq_size() const { return size_; }    // receives that may wait in it
    uint32_t max_sge() const { return max_sge_; } // elements of a receive
    // nullptr: receives complete in a CQ of the connection.
    rpma_cq *rcq() const { return rcq_ ? &*rcq_ : nullptr; }

    // Has the device say once that fewer receives wait. RPMA_E_INVAL, RPMA_E_NOSUPP,
    // RPMA_E_PROVIDER.
    void set_limit(rpma::Call &call, uint32_t limit);

    // Returns false on failure: RPMA_E_PROVIDER, everything stays, so that a retry works. True:
    // the queue is gone, even if its CQ was refused.
    bool try_release(rpma::Call &call);

  private:
    rpma::Srq queue_;
    uint32_t size_;
    uint32_t max_sge_;
    mutable std::optional<rpma_cq> rcq_; // who may see the queue may wait on its CQ
    rpma::HandleEntry entry_;            // released first: see there
};
