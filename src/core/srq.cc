// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// srq.cc -- shared receive queues

#include "core/srq.hh"

#include "core/peer.hh"

rpma::Result<std::unique_ptr<rpma_srq>> rpma_srq::create(const rpma_peer &peer,
                                                         const rpma_srq_cfg &cfg) {
    ibv_srq_init_attr attributes = {};
    attributes.attr.max_wr = cfg.rq_size;
    attributes.attr.max_sge = 1;
    ibv_srq *queue = ibv_create_srq(&peer.pd(), &attributes);
    if (queue == nullptr)
        return rpma::verbs::failed("ibv_create_srq()");

    auto srq = rpma::make<rpma_srq>(rpma::verbs::Srq(queue), attributes.attr.max_wr);
    const uint32_t rcq_size = cfg.rcq_size;
    if (!srq || rcq_size == 0)
        return srq;
    auto rcq = rpma_cq::create(*peer.pd().context, rcq_size, nullptr);
    if (!rcq)
        return rpma::fail(rcq.error());
    (*srq)->rcq_.emplace(std::move(*rcq));
    return srq;
}

rpma::Status rpma_srq::close() {
    if (rcq_) {
        rpma::Status status = rcq_->try_close();
        if (!status)
            return status;
        rcq_.reset();
    }
    return queue_.try_close();
}
