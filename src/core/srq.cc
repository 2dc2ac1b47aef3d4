// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// srq.cc -- shared receive queues

#include "core/srq.hh"

#include <algorithm>

#include "core/peer.hh"

using namespace rpma;

std::unique_ptr<rpma_srq> rpma_srq::create(Call &call, const rpma_peer &peer,
                                           const rpma_srq_cfg &cfg) {
    const uint32_t max_sge = cfg.max_sge;
    if (!check_max_sge(call, max_sge, "max_srq_sge", peer.device().max_srq_sge, MOST_PIECES))
        return nullptr;
    uint32_t size = cfg.rq_size;
    Srq queue = create_srq(call, peer.pd(), &size, peer.device().max_srq_wr, max_sge);
    if (!queue)
        return nullptr;
    auto srq = make<rpma_srq>(call, std::move(queue), size, max_sge);
    const uint32_t rcq_size = cfg.rcq_size;
    if (!srq || rcq_size == 0)
        return srq;
    auto rcq =
        rpma_cq::create(call, *peer.pd().context, rcq_size, peer.device().max_cqe, 0, nullptr);
    if (!rcq)
        return nullptr;
    srq->rcq_.emplace(std::move(*rcq));
    return srq;
}

bool rpma_srq::try_release(Call &call) {
    // The shared receive queue comes first: if it is refused, it still needs its CQ.
    if ((rcq_ && !rcq_->check_unused(call)) || !queue_.try_release(call))
        return false;
    if (rcq_)
        rcq_->release(call);
    return true;
}
