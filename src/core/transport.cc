// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// transport.cc -- queues and queue pair of a connection

#include "core/transport.hh"

#include <algorithm>

#include "core/peer.hh"
#include "core/srq.hh"

namespace rpma {

bool has_channel_conflict(const rpma_conn_cfg &cfg) {
    const rpma_srq *srq = cfg.srq;
    return cfg.shared_channel && srq != nullptr && srq->rcq() != nullptr;
}

Result<Transport> Transport::create(const rpma_peer &peer, verbs::CmId &&id,
                                    const rpma_conn_cfg &cfg) {
    Transport made(std::move(id));
    const rpma_srq *srq = cfg.srq;
    Status status = made.create_queues(peer, cfg, srq);
    if (!status)
        return fail(status.error());

    ibv_cq *receive_cq = &made.cq->queue();
    if (srq != nullptr && srq->rcq() != nullptr)
        receive_cq = &srq->rcq()->queue();
    else if (made.rcq)
        receive_cq = &made.rcq->queue();

    auto qp = peer.create_qp(*made.id.get(), cfg, made.cq->queue(), *receive_cq,
                             srq != nullptr ? srq->queue() : nullptr);
    if (!qp)
        return fail(qp.error());
    made.qp = std::move(*qp);
    return made;
}

namespace {

// Whether a receive CQ, of the SRQ or of the connection, takes the receives.
bool has_receive_cq(const rpma_conn_cfg &cfg, const rpma_srq *srq) {
    return cfg.rcq_size > 0 || (srq != nullptr && srq->rcq() != nullptr);
}

// A size that the program did not set leaves room for every operation that may complete: a
// completion that finds no room is lost, on rdma_rxe without a word.
uint32_t main_cq_size(const rpma_peer &peer, const rpma_conn_cfg &cfg, const rpma_srq *srq) {
    if (cfg.cq_size_set)
        return cfg.cq_size;
    uint64_t completions = cfg.sq_size;
    if (!has_receive_cq(cfg, srq))
        completions += srq != nullptr ? srq->size() : cfg.rq_size.load();
    completions = std::min<uint64_t>(completions, peer.max_cq_size());
    return std::max(cfg.cq_size.load(), static_cast<uint32_t>(completions));
}

} // namespace

Status Transport::create_queues(const rpma_peer &peer, const rpma_conn_cfg &cfg,
                                const rpma_srq *srq) {
    ibv_context &device = *id->verbs;
    if (cfg.shared_channel) {
        auto channel = verbs::create_comp_channel(device);
        if (!channel)
            return fail(channel.error());
        shared = std::move(*channel);
    }
    auto main = rpma_cq::create(device, main_cq_size(peer, cfg, srq), shared.get());
    if (!main)
        return fail(main.error());
    cq.emplace(std::move(*main));

    const uint32_t rcq_size = cfg.rcq_size;
    const bool srq_receives = srq != nullptr && srq->rcq() != nullptr;
    if (rcq_size == 0 || srq_receives)
        return {};
    auto receive = rpma_cq::create(device, rcq_size, shared.get());
    if (!receive)
        return fail(receive.error());
    rcq.emplace(std::move(*receive));
    return {};
}

Status Transport::close() {
    FirstFailure first;
    first.note(qp.close());
    if (rcq)
        first.note(rcq->close());
    first.note(cq->close());
    first.note(id.close());
    first.note(shared.close());
    first.note(events.close());
    return first.status();
}

} // namespace rpma
