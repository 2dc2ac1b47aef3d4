// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_resources.cc -- creates and releases the queues and the queue pair of a connection

#include "core/conn.hh"

#include <algorithm>
#include <cinttypes>

#include "base/probes.hh"
#include "core/peer.hh"
#include "core/srq.hh"
#include "verbs/text.hh"

using namespace rpma;

namespace {

// The CQ of receives that belongs to the shared receive queue, or nullptr.
rpma_cq *rcq_of(const rpma_srq *srq) {
    return srq != nullptr ? srq->rcq() : nullptr;
}

// Checks that a queue of cfg is on the device of peer; actual is its device.
bool check_device(Call &call, const rpma_peer &peer, const char *what,
                  const ibv_context *actual) {
    const ibv_context *expected = peer.pd().context;
    if (actual != expected)
        RPMA_FAIL(call, RPMA_E_INVAL, 0,
                  "cfg has a %s of another device: it is on %s, the peer is on %s", what,
                  device_text(actual, *expected).chars, ibv_get_device_name(expected->device));
    return actual == expected;
}

// Checks that connections of peer may use this queue of the program.
bool check_program_cq(Call &call, const rpma_peer &peer, const rpma_cq &cq) {
    if (!cq.is_of_program()) {
        RPMA_FAIL(call, RPMA_E_INVAL, 0,
                  "cfg has a completion queue that was not created by rpma_cq_new()");
        return false;
    }
    return check_device(call, peer, "completion queue", cq.queue().context);
}

// The largest number of completions that the main CQ may have to hold.
uint64_t max_completions(const ConnSettings &cfg) {
    const rpma_srq *srq = cfg.srq;
    uint64_t completions = cfg.sq_size;
    if (cfg.rcq_size == 0 && cfg.rcq == nullptr && rcq_of(srq) == nullptr)
        completions += srq != nullptr ? srq->rq_size() : cfg.rq_size;
    return completions;
}

// The default size leaves room for every operation that may complete: if a CQ overruns,
// completions are lost, on rdma_rxe without an error.
uint32_t main_cq_size(const rpma_peer &peer, const ConnSettings &cfg, uint64_t completions) {
    if (cfg.is_cq_size_set)
        return cfg.cq_size;
    const uint64_t size = std::min<uint64_t>(completions, peer.device().max_cqe);
    return std::max(cfg.cq_size, static_cast<uint32_t>(size));
}

// The operations (IBV_QP_EX_WITH_*) of the queue pair of a connection with this flush mode:
// native ones and all that a plain queue pair has. 0: it is a plain one.
uint64_t extended_operations([[maybe_unused]] const Capabilities &device,
                             [[maybe_unused]] rpma_flush_mode flush_mode) {
    uint64_t operations = 0;
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    if (device.atomic_write)
        operations |= IBV_QP_EX_WITH_ATOMIC_WRITE;
#endif
#ifdef RPMA_NATIVE_FLUSH
    if (flush_mode != RPMA_FLUSH_MODE_EMULATED)
        operations |= IBV_QP_EX_WITH_FLUSH;
#endif
    // A batch with a native operation posts its other operations to the same extended queue
    // pair.
    if (operations != 0)
        operations |= IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE |
                      IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
                      IBV_QP_EX_WITH_SEND_WITH_IMM;
    if (operations != 0 && device.atomics)
        operations |= IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
    return operations;
}

void warn_of_small_cq(const Call &call, const rpma_peer &peer, const ConnSettings &cfg,
                      uint64_t completions) {
    const uint32_t max_cqe = peer.device().max_cqe;
    if (cfg.cq == nullptr && !cfg.is_cq_size_set && completions > max_cqe)
        RPMA_LOG(
            RPMA_LOG_LEVEL_WARNING, call.function(),
            "the main CQ holds %" PRIu32 " completions (max_cqe of the device), the queues "
            "of cfg may need room for %" PRIu64 ": completions without room are lost; make "
            "the queues shorter, or set a receive CQ",
            max_cqe, completions);
}

} // namespace

bool rpma::check_cfg(Call &call, const rpma_peer &peer, const ConnSettings &cfg) {
    const rpma_cq *cq = cfg.cq, *rcq = cfg.rcq;
    const rpma_srq *srq = cfg.srq;
    const char *conflict = nullptr;
    if (cfg.shared_channel && rcq_of(srq) != nullptr)
        conflict =
            "cfg has a shared completion channel, and its shared receive queue owns a "
            "receive CQ, which has a channel of its own: rpma_srq_cfg_set_rcq_size(0) omits it";
    else if (cfg.shared_channel && (cq != nullptr || rcq != nullptr))
        conflict = "cfg has a shared completion channel and a completion queue of "
                   "rpma_cq_new(), which has a channel of its own: set one of them";
    else if (rcq != nullptr && rcq_of(srq) != nullptr)
        conflict =
            "cfg has a receive CQ of rpma_cq_new(), and its shared receive queue owns one "
            "as well: set one of them";
    if (conflict != nullptr)
        RPMA_FAIL(call, RPMA_E_INVAL, 0, "%s", conflict);
    return conflict == nullptr && (cq == nullptr || check_program_cq(call, peer, *cq)) &&
           (rcq == nullptr || check_program_cq(call, peer, *rcq)) &&
           (srq == nullptr ||
            check_device(call, peer, "shared receive queue", srq->queue()->context)) &&
           (cfg.flush_mode != RPMA_FLUSH_MODE_NATIVE || peer.check_native_flush(call));
}

bool rpma_conn::set_up(Call &call, const ConnSettings &cfg) {
    const Capabilities &capabilities = peer.device();
    const rpma_flush_mode flush_mode = peer.choose_flush(cfg.flush_mode);
    const uint64_t operations = extended_operations(capabilities, flush_mode);
    if (!check_max_sge(call, "max_sge", {cfg.max_sge, capabilities.max_sge, CONN_SGE_SETTER}))
        return false;
    const uint64_t completions = max_completions(cfg);
    if (!create_queues(call, cfg, completions) || !create_queue_pair(call, cfg, operations)) {
        drop_queues();
        return false;
    }
    warn_of_small_cq(call, peer, cfg, completions);
    qp = id_->qp;
    receive_limit = cfg.srq != nullptr ? 0 : uint64_t{UINT32_MAX} + 1;
    max_sge = static_cast<uint16_t>(cfg.max_sge);
    max_read_sge = static_cast<uint16_t>(std::min(cfg.max_sge, capabilities.max_read_sge));
    retry_count_ = cfg.retry_count;
    rnr_retry_count_ = cfg.rnr_retry_count;
    rnr_timer_ms_ = static_cast<uint16_t>(cfg.rnr_timer_ms);
    bool has_flush = false, has_atomic_write = false;
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    // If the provider has no extended queue pairs, ibv_qp_to_qp_ex() reads beyond the queue
    // pair.
    extended = operations != 0 ? ibv_qp_to_qp_ex(qp) : nullptr;
#endif
#ifdef RPMA_NATIVE_FLUSH
    has_flush = extended != nullptr && extended->wr_flush != nullptr;
#endif
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    has_atomic_write = extended != nullptr && extended->wr_atomic_write != nullptr;
#endif
    flush.init(call, flush_mode, cfg.flush_mode == RPMA_FLUSH_MODE_NATIVE, has_flush,
               has_atomic_write);
    probe::flush_method(this, flush.allowed().bits(), 0);
    state_ = State::SET_UP;
    return true;
}

inline bool rpma_conn::create_queue_pair(Call &call, const ConnSettings &cfg,
                                         uint64_t operations) {
    const rpma_cq &receive_cq = used_rcq_ ? *used_rcq_ : own_rcq_.exists() ? own_rcq_ : *cq_;
    ibv_qp_init_attr_ex attributes = {};
    attributes.send_cq = &cq_->queue();
    attributes.recv_cq = &receive_cq.queue();
    attributes.srq = cfg.srq != nullptr ? cfg.srq->queue() : nullptr;
    // A queue pair with an SRQ has no receive queue, but mlx5 checks the requested size.
    attributes.cap = {
        .max_send_wr = cfg.sq_size,
        .max_recv_wr = cfg.srq != nullptr ? 0 : cfg.rq_size,
        .max_send_sge = cfg.max_sge,
        .max_recv_sge = cfg.srq != nullptr ? 0 : cfg.max_sge,
        .max_inline_data = std::max<uint32_t>(cfg.inline_size, RPMA_ATOMIC_WRITE_ALIGNMENT),
    };
    attributes.qp_type = IBV_QPT_RC;
    attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
    attributes.pd = &peer.pd();
    // Devices without extended queue pairs refuse this member of the mask even if its value is
    // 0.
    if (operations != 0) {
        attributes.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
        attributes.send_ops_flags = operations;
    }
    queue_pair_ =
        create_qp(call, id_, attributes, peer.device().max_qp_wr, peer.device().max_qp);
    const ibv_qp_cap &cap = attributes.cap;
    granted_ = {cap.max_send_wr, cap.max_recv_wr, cap.max_inline_data};
    // The ack timeout is the last step that may fail, because an option of the ID cannot be
    // reset. Linux applies it when the queue pair becomes ready to send
    // (drivers/infiniband/core/cma.c, rdma_init_qp_attr()).
    return queue_pair_ &&
           (cfg.ack_timeout_ms <= 0 || id_.set_ack_timeout(call, cfg.ack_timeout_ms));
}

inline bool rpma_conn::create_queues(Call &call, const ConnSettings &cfg,
                                     uint64_t completions) {
    const uint32_t max_cqe = peer.device().max_cqe, max_cq = peer.device().max_cq;
    if (cfg.shared_channel) {
        shared_ = create_comp_channel(call, *id_->verbs);
        if (!shared_)
            return false;
    }
    if (cfg.cq != nullptr)
        used_cq_ = use(*cfg.cq);
    else if (!create_queue(call,
                           {main_cq_size(peer, cfg, completions), max_cqe,
                            "rpma_conn_cfg_set_cq_size", max_cq},
                           own_cq_))
        return false;
    cq_ = used_cq_ ? used_cq_.get() : &own_cq_;

    rpma_cq *const receive_cq = cfg.rcq != nullptr ? cfg.rcq : rcq_of(cfg.srq);
    if (receive_cq != nullptr) {
        // A connection that uses one queue for both has no receive CQ.
        if (receive_cq != cq_)
            used_rcq_ = use(*receive_cq);
    } else if (cfg.rcq_size != 0 &&
               !create_queue(call,
                             {cfg.rcq_size, max_cqe, "rpma_conn_cfg_set_rcq_size", max_cq},
                             own_rcq_))
        return false;
    rcq_ = own_rcq_.exists() ? &own_rcq_ : cfg.rcq != nullptr ? used_rcq_.get() : nullptr;
    return true;
}

inline bool rpma_conn::create_queue(Call &call, const SizeRequest &size, rpma_cq &queue) {
    return queue.create(call, *id_->verbs, size, 0, shared_.get());
}

void rpma_conn::drop_queues() {
    queue_pair_ = {};
    own_rcq_.drop();
    own_cq_.drop();
    used_rcq_.reset();
    used_cq_.reset();
    shared_ = {};
}

void rpma_conn::release(Call &call) {
    entry_.remove();
    queue_pair_.release(call);
    own_rcq_.release(call);
    own_cq_.release(call);
    id_.release(call);
    shared_.release(call);
    events_.release(call);
}
