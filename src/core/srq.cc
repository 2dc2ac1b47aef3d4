// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// srq.cc -- shared receive queues

#include "core/srq.hh"

#include <algorithm>

#include "core/peer.hh"

using namespace rpma;

std::unique_ptr<rpma_srq> rpma_srq::create(Call &call, const rpma_peer &peer,
                                           const SrqSettings &cfg) {
    const Capabilities &device = peer.device();
    const uint32_t max_sge = cfg.max_sge;
    if (!check_max_sge(call, "max_srq_sge", {max_sge, device.max_srq_sge, SRQ_SGE_SETTER}))
        return nullptr;
    SizeRequest size = {cfg.rq_size, device.max_srq_wr, "rpma_srq_cfg_set_rq_size",
                        device.max_srq};
    Srq queue = create_srq(call, peer.pd(), size, max_sge);
    if (!queue)
        return nullptr;
    auto srq = make<rpma_srq>(call, std::move(queue), size.requested, max_sge);
    const SizeRequest rcq_size = {cfg.rcq_size, device.max_cqe, "rpma_srq_cfg_set_rcq_size",
                                  device.max_cq};
    if (srq)
        srq->entry_.add(srq->queue_.get(), srq.get());
    if (!srq || rcq_size.requested == 0)
        return srq;
    const bool has_rcq = srq->rcq_.create(call, *peer.pd().context, rcq_size, 0, nullptr);
    return has_rcq ? std::move(srq) : nullptr;
}

void rpma_srq::set_limit(Call &call, uint32_t limit) {
    if (limit > size_) {
        RPMA_FAIL(
            call, RPMA_E_INVAL, 0,
            "limit is %u, the shared receive queue holds %u receives; possible: 0 to that",
            limit, size_);
        return;
    }
    ibv_srq_attr attributes = {.max_wr = 0, .max_sge = 0, .srq_limit = limit};
    if (const int error = ibv_modify_srq(queue_.get(), &attributes, IBV_SRQ_LIMIT); error != 0)
        RPMA_FAIL(call, code_of_optional_call(error), error, "ibv_modify_srq(srq_limit=%u)",
                  limit);
}

bool rpma_srq::try_release(Call &call) {
    if (!rcq_.check_unused(call))
        return false;
    entry_.remove();
    // Release the shared receive queue first: if the provider refuses, the queue still needs
    // its CQ.
    if (!queue_.try_release(call)) {
        entry_.add(queue_.get(), this);
        return false;
    }
    rcq_.release(call);
    return true;
}
