// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// srq.cc -- shared receive queues

#include "core/srq.hh"

#include <algorithm>

#include "core/peer.hh"

using namespace rpma;

std::unique_ptr<rpma_srq> rpma_srq::create(Call &call, const rpma_peer &peer,
                                           const rpma_srq_cfg &cfg) {
    const rpma_capabilities &device = peer.device();
    const uint32_t max_sge = cfg.max_sge;
    if (!check_max_sge(call, "max_srq_sge", {max_sge, device.max_srq_sge, SRQ_PIECES},
                       MOST_PIECES))
        return nullptr;
    Demand size = {cfg.rq_size, device.max_srq_wr, "rpma_srq_cfg_set_rq_size"};
    Srq queue = create_srq(call, peer.pd(), size, max_sge);
    if (!queue)
        return nullptr;
    auto srq = make<rpma_srq>(call, std::move(queue), size.wanted, max_sge);
    const Demand rcq_size = {cfg.rcq_size, device.max_cqe, "rpma_srq_cfg_set_rcq_size"};
    if (srq)
        srq->queue_->srq_context = &srq->size_;
    if (!srq || rcq_size.wanted == 0)
        return srq;
    auto rcq = rpma_cq::create(call, *peer.pd().context, rcq_size, 0, nullptr);
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
