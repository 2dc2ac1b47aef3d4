// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn.hh -- a connection: a queue pair with its queues and events
//
// Thread-safety: any thread may post, wait and poll; the provider serialises these calls where
// necessary. Only one thread at a time may read events.

#pragma once

#include <atomic>

#include "base/memory.hh"
#include "core/flush.hh"
#include "core/flush_target.hh"
#include "core/handle_entry.hh"
#include "core/transport.hh"

struct rpma_peer;
struct rpma_capabilities;

namespace rpma {

// The text of rpma_utils_conn_event_2str().
const char *event_text(rpma_conn_event event);

} // namespace rpma

struct rpma_conn : rpma::Allocated {
    explicit rpma_conn(rpma::CmId &&id) : transport_(std::move(id)) {}

    // Creates the queues and the queue pair of peer from cfg. Call it before the connection has
    // events. Returns false on failure, and the connection is unchanged: RPMA_E_INVAL,
    // RPMA_E_PROVIDER.
    bool set_up(rpma::Call &call, const rpma_peer &peer, const rpma::ConnSettings &cfg);
    // Creates an event channel for the connection, and moves the events of its ID, if it has
    // one, to this channel. Returns false on failure: RPMA_E_PROVIDER.
    bool own_events(rpma::Call &call, bool nonblocking);
    bool has_events() const { return static_cast<bool>(transport_.events); }
    rdma_event_channel *events() const { return transport_.events.get(); }
    // Before set_up(): replaces the CM ID, and destroys the previous one with its events.
    void replace_id(rpma::CmId &&id) {
        const rpma::CmId previous(std::move(transport_.id));
        transport_.id = std::move(id);
    }
    // Copies the private data of the other side. Returns false if there is no memory.
    bool keep(const rdma_conn_param &param) {
        return transport_.received.copy(param.private_data, param.private_data_len);
    }
    // Registers the memory that emulated flushes of peer read to, unless all flushes are
    // native. Returns false on failure: RPMA_E_NOMEM, RPMA_E_PROVIDER.
    bool prepare_flushes(rpma::Call &call, rpma_peer &peer);

    const rpma::CmId &id() const { return transport_.id; }
    rpma::CmId &id() { return transport_.id; }
    // Once called, these functions let events of the device find the connection. They return
    // false on failure: RPMA_E_PROVIDER.
    bool connect(rpma::Call &call, rdma_conn_param &param) {
        entry_.enter(qp, this);
        return transport_.id.connect(call, param);
    }
    bool accept(rpma::Call &call, rdma_conn_param &param) {
        entry_.enter(qp, this);
        if (!transport_.id.accept(call, param))
            return false;
        set_rnr_timer(call);
        return true;
    }
    // RPMA_E_PROVIDER.
    void disconnect(rpma::Call &call) { transport_.id.disconnect(call); }
    // Destroys all objects and drops their pointers even if the provider fails.
    // RPMA_E_PROVIDER.
    void release(rpma::Call &call) {
        entry_.withdraw();
        transport_.release(call);
    }

    // RPMA_CONN_UNDEFINED: RPMA_E_NO_EVENT, RPMA_E_PROVIDER, RPMA_E_UNKNOWN.
    rpma_conn_event next_event(rpma::Call &call);
    int event_fd() const { return transport_.events->fd; }

    // Waits on the shared channel and sets *fired to the queue that has completions. 0,
    // RPMA_E_NOT_SHARED_CHNL, RPMA_E_NO_COMPLETION, RPMA_E_UNKNOWN, RPMA_E_PROVIDER.
    int wait(const char *function, rpma_cq **fired);
    // The shared channel's descriptor. RPMA_E_NOT_SHARED_CHNL.
    int shared_fd(rpma::Call &call) const;

    rpma_cq *cq() const { return &transport_.cq(); }
    rpma_cq *rcq() const { return transport_.rcq(); }
    // The capacities that the device granted to the queue pair; for the log.
    const ibv_qp_cap &granted() const { return transport_.granted; }
    uint32_t rq_size() const { return granted().max_recv_wr; }
    rpma_conn_private_data private_data() const { return transport_.received.view(); }

    // The members that an operation reads come first: they share one cache line.
    ibv_qp *qp = nullptr; // nullptr until set_up()
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    ibv_qp_ex *extended; // the same queue pair for native operations, or nullptr
#endif
    ibv_sge flush_read = {}; // the SGE that an emulated flush reads to
    rpma::FlushMethods flush;
    uint16_t max_sge;      // SGEs of an operation
    uint16_t max_read_sge; // SGEs of a read
    const rpma_capabilities *device;
    std::atomic<bool> warned_of_misalignment = false;

  private:
    bool is_shared(rpma::Call &call) const;
    // librdmacm leaves the default, whenever it makes the queue pair ready to send.
    void set_rnr_timer(const rpma::Call &call) {
        if (rnr_timer_ms_ != 0)
            transport_.id.set_rnr_timer(call, std::exchange(rnr_timer_ms_, 0));
    }
    [[gnu::cold, gnu::noinline]] int refuse_wait(const char *function) const;

    bool is_established_ = false; // fills a gap in the layout
    uint16_t rnr_timer_ms_ = 0;   // to be set; 0: the default, or set already
    // Empty on a connection whose flushes are all native. It outlives the queue pair.
    rpma::FlushTargetUse flush_target_;
    rpma::Transport transport_;
    rpma::HandleEntry entry_; // of the queue pair; released first, see HandleEntry
};
