// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// transport.cc -- queues and queue pair of a connection

#include "core/transport.hh"

#include <algorithm>
#include <cinttypes>

#include "core/peer.hh"
#include "core/srq.hh"
#include "verbs/text.hh"

namespace rpma {

namespace {

// The CQ of receives that belongs to the shared receive queue, or nullptr.
rpma_cq *rcq_of(const rpma_srq *srq) {
    return srq != nullptr ? srq->rcq() : nullptr;
}

// Checks that a queue of cfg is on the device of peer; has is the queue's device.
bool check_device(Call &call, const rpma_peer &peer, const char *what, const ibv_context *has) {
    const ibv_context *needed = peer.pd().context;
    if (has != needed)
        RPMA_FAIL(
            call, RPMA_E_INVAL, 0,
            "cfg has a %s of another device: it is on %s, the peer on %s, where it must be",
            what, device_text(has, *needed).chars, ibv_get_device_name(needed->device));
    return has == needed;
}

// Checks that connections of peer may use this queue of the program.
bool check_borrowed(Call &call, const rpma_peer &peer, const rpma_cq &cq) {
    if (!cq.is_of_program()) {
        RPMA_FAIL(call, RPMA_E_INVAL, 0,
                  "cfg has a completion queue that was not made by rpma_cq_new()");
        return false;
    }
    return check_device(call, peer, "completion queue", cq.queue().context);
}

// The largest number of completions that the main CQ may have to hold.
uint64_t most_completions(const ConnSettings &cfg) {
    const rpma_srq *srq = cfg.srq;
    uint64_t completions = cfg.sq_size;
    if (cfg.rcq_size == 0 && cfg.rcq == nullptr && rcq_of(srq) == nullptr)
        completions += srq != nullptr ? srq->rq_size() : cfg.rq_size;
    return completions;
}

// The default size leaves room for every operation that may complete: if a CQ overruns,
// completions are lost, on rdma_rxe without an error.
uint32_t main_cq_size(const rpma_peer &peer, const ConnSettings &cfg) {
    if (cfg.cq_size_set)
        return cfg.cq_size;
    const uint64_t fitting = std::min<uint64_t>(most_completions(cfg), peer.device().max_cqe);
    return std::max(cfg.cq_size, static_cast<uint32_t>(fitting));
}

void warn_of_small_cq(const Call &call, const rpma_peer &peer, const ConnSettings &cfg) {
    const uint64_t wanted = most_completions(cfg);
    const uint32_t most = peer.device().max_cqe;
    if (cfg.cq == nullptr && !cfg.cq_size_set && wanted > most)
        RPMA_LOG(RPMA_LOG_LEVEL_WARNING, call.function(),
                 "the main CQ holds %" PRIu32
                 " completions (max_cqe of the device), the queues "
                 "of cfg may need room for %" PRIu64 ": those that find no room are lost; make "
                 "the queues shorter, or set a receive CQ",
                 most, wanted);
}

} // namespace

bool check_queues(Call &call, const rpma_peer &peer, const ConnSettings &cfg) {
    const rpma_cq *cq = cfg.cq, *rcq = cfg.rcq;
    const rpma_srq *srq = cfg.srq;
    const char *conflict = nullptr;
    if (cfg.shared_channel && rcq_of(srq) != nullptr)
        conflict =
            "cfg has a shared completion channel, and its shared receive queue owns a "
            "receive CQ, which has a channel of its own: rpma_srq_cfg_set_rcq_size(0) does "
            "without";
    else if (cfg.shared_channel && (cq != nullptr || rcq != nullptr))
        conflict = "cfg has a shared completion channel and a completion queue of "
                   "rpma_cq_new(), which has a channel of its own: set one of them";
    else if (rcq != nullptr && rcq_of(srq) != nullptr)
        conflict =
            "cfg has a receive CQ of rpma_cq_new(), and its shared receive queue owns one "
            "as well: set one of them";
    if (conflict != nullptr)
        RPMA_FAIL(call, RPMA_E_INVAL, 0, "%s", conflict);
    return conflict == nullptr && (cq == nullptr || check_borrowed(call, peer, *cq)) &&
           (rcq == nullptr || check_borrowed(call, peer, *rcq)) &&
           (srq == nullptr ||
            check_device(call, peer, "shared receive queue", srq->queue()->context));
}

bool Transport::make_queue_pair(Call &call, const rpma_peer &peer, const ConnSettings &cfg,
                                rpma_flush_mode flush_mode) {
    if (try_queue_pair(call, peer, cfg, flush_mode)) {
        warn_of_small_cq(call, peer, cfg);
        return true;
    }
    qp = {};
    own_rcq.reset();
    own_cq.reset();
    srq_rcq.reset();
    borrowed_rcq.reset();
    borrowed_cq.reset();
    shared = {};
    return false;
}

bool Transport::try_queue_pair(Call &call, const rpma_peer &peer, const ConnSettings &cfg,
                               rpma_flush_mode flush_mode) {
    const rpma_capabilities &device = peer.device();
    const uint32_t pieces = cfg.max_sge;
    if (!check_max_sge(call, "max_sge", {pieces, device.max_sge, CONN_PIECES}, MOST_PIECES))
        return false;
    max_sge = static_cast<uint16_t>(pieces);
    max_read_sge = static_cast<uint16_t>(std::min(pieces, device.max_read_sge));
    const rpma_srq *srq = cfg.srq;
    if (!create_queues(call, peer, cfg, srq))
        return false;

    const rpma_cq *receive_cq = srq_rcq ? srq_rcq.get() : rcq();
    if (receive_cq == nullptr)
        receive_cq = &cq();
    granted = {
        .max_send_wr = cfg.sq_size,
        .max_recv_wr = cfg.rq_size,
        .max_send_sge = max_sge,
        .max_recv_sge = max_sge,
        .max_inline_data = std::max<uint32_t>(cfg.inline_size, RPMA_ATOMIC_WRITE_ALIGNMENT),
    };
    const uint64_t operations = peer.native_operations(flush_mode);
    qp = peer.create_qp(call, *id.get(), granted, operations, cq().queue(), receive_cq->queue(),
                        srq != nullptr ? srq->queue() : nullptr);
    if (!qp)
        return false;
    // The last step that may fail, because an option of the ID cannot be reset. Linux applies
    // it when the queue pair becomes ready to send (drivers/infiniband/core/cma.c,
    // rdma_init_qp_attr()).
    const int ack_timeout_ms = cfg.ack_timeout_ms;
    if (ack_timeout_ms > 0 && !id.set_ack_timeout(call, ack_timeout_ms))
        return false;
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    // If the provider has no extended queue pairs, ibv_qp_to_qp_ex() reads beyond the queue
    // pair.
    extended = operations != 0 ? ibv_qp_to_qp_ex(id->qp) : nullptr;
#endif
    return true;
}

bool Transport::flushes_natively() const {
#ifdef RPMA_NATIVE_FLUSH
    return extended != nullptr && extended->wr_flush != nullptr;
#else
    return false;
#endif
}

bool Transport::writes_natively() const {
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    return extended != nullptr && extended->wr_atomic_write != nullptr;
#else
    return false;
#endif
}

bool Transport::create_queues(Call &call, const rpma_peer &peer, const ConnSettings &cfg,
                              const rpma_srq *srq) {
    ibv_context &device = *id->verbs;
    const uint32_t most = peer.device().max_cqe;
    if (cfg.shared_channel) {
        shared = create_comp_channel(call, device);
        if (!shared)
            return false;
    }
    rpma_cq *const of_program = cfg.cq;
    if (of_program != nullptr) {
        borrowed_cq = use(*of_program);
    } else {
        auto main = rpma_cq::create(
            call, device,
            {main_cq_size(peer, cfg), most, "rpma_conn_cfg_set_cq_size", peer.device().max_cq},
            0, shared.get());
        if (!main)
            return false;
        own_cq.emplace(std::move(*main)).enter();
    }
    rpma_cq *const receives = cfg.rcq;
    if (receives != nullptr) {
        // A connection that uses one queue for both has no receive CQ.
        if (receives != of_program)
            borrowed_rcq = use(*receives);
        return true;
    }
    if (rpma_cq *const of_srq = rcq_of(srq)) {
        srq_rcq = use(*of_srq);
        return true;
    }
    const Demand size = {cfg.rcq_size, most, "rpma_conn_cfg_set_rcq_size",
                         peer.device().max_cq};
    return size.wanted == 0 || create_receive_queue(call, size);
}

bool Transport::create_receive_queue(Call &call, const Demand &size) {
    auto made = rpma_cq::create(call, *id->verbs, size, 0, shared.get());
    if (made)
        own_rcq.emplace(std::move(*made)).enter();
    return made.has_value();
}

void Transport::release(Call &call) {
    qp.release(call);
    if (own_rcq)
        own_rcq->release(call);
    if (own_cq)
        own_cq->release(call);
    srq_rcq.reset();
    borrowed_rcq.reset();
    borrowed_cq.reset();
    id.release(call);
    shared.release(call);
    events.release(call);
}

} // namespace rpma
