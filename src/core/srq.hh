// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// srq.hh -- a shared receive queue, with or without a receive CQ of its own
//
// Thread-safety: any thread may post receives.

#pragma once

#include "base/allocation.hh"
#include "core/config.hh"
#include "core/cq.hh"

struct rpma_peer;

struct rpma_srq : rpma::Allocated {
    // Returns nullptr on failure: RPMA_E_INVAL, RPMA_E_NOMEM, RPMA_E_PROVIDER.
    static std::unique_ptr<rpma_srq> create(rpma::Call &call, const rpma_peer &peer,
                                            const rpma::SrqSettings &cfg);

    rpma_srq(rpma::Srq &&queue, uint32_t size, uint32_t max_sge)
        : queue_(std::move(queue)), size_(size), max_sge_(max_sge) {}

    ibv_srq *queue() const { return queue_.get(); }
    uint32_t rq_size() const { return size_; }    // receives that it can hold
    uint32_t max_sge() const { return max_sge_; } // SGEs of a receive
    // nullptr: receives complete in a CQ of the connection
    rpma_cq *rcq() const { return rcq_.exists() ? &rcq_ : nullptr; }

    // Requests one event from the device once the queue holds fewer receives than limit.
    // RPMA_E_INVAL, RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    void set_limit(rpma::Call &call, uint32_t limit);

    // Returns false on failure (RPMA_E_PROVIDER): all objects remain, and a retry is possible.
    // True: the queue is destroyed, even if the provider refused to destroy its CQ.
    bool try_release(rpma::Call &call);

  private:
    rpma::Srq queue_;
    uint32_t size_;
    uint32_t max_sge_;
    mutable rpma_cq rcq_;     // a program may wait on the CQ of a const queue
    rpma::HandleEntry entry_; // released first, see HandleEntry
};
