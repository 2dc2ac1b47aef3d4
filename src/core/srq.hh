// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// srq.hh -- a shared receive queue, with or without a receive CQ of its own
//
// Thread-safety: receives may be posted from any thread.

#pragma once

#include <optional>

#include "base/memory.hh"
#include "core/config.hh"
#include "core/cq.hh"
#include "verbs/objects.hh"

struct rpma_peer;

struct rpma_srq : rpma::Allocated {
    // RPMA_E_NOMEM, RPMA_E_PROVIDER.
    static rpma::Result<std::unique_ptr<rpma_srq>> create(const rpma_peer &peer,
                                                          const rpma_srq_cfg &cfg);

    rpma_srq(rpma::verbs::Srq &&queue, uint32_t size) : queue_(std::move(queue)), size_(size) {}

    ibv_srq *queue() const { return queue_.get(); }
    uint32_t size() const { return size_; } // receives that may wait in it
    const rpma_cq *rcq() const { return rcq_ ? &*rcq_ : nullptr; }
    rpma_cq *rcq() { return rcq_ ? &*rcq_ : nullptr; }

    // Stops at the first refusal and keeps what is left, so that a retry works.
    rpma::Status close();

  private:
    rpma::verbs::Srq queue_;
    uint32_t size_;
    std::optional<rpma_cq> rcq_;
};
