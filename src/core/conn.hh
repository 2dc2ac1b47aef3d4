// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn.hh -- a connection: a queue pair with its queues and events
//
// Thread-safety: operations, waiting and polling may be called from any thread; the provider
// serialises what it must. Events are for one thread at a time.

#pragma once

#include <atomic>

#include "base/memory.hh"
#include "core/flush_target.hh"
#include "core/mr.hh"
#include "core/transport.hh"

struct rpma_peer;

namespace rpma {

// How a connection flushes: by reading a few bytes back, or by the device's own operation.
enum class FlushMode : uint8_t { EMULATED, NATIVE };

// What rpma_utils_conn_event_2str() says.
const char *event_text(rpma_conn_event event);

} // namespace rpma

struct rpma_conn : rpma::Allocated {
    // nullptr: RPMA_E_NOMEM, RPMA_E_PROVIDER.
    static std::unique_ptr<rpma_conn> create(rpma::Call &call, rpma_peer &peer,
                                             rpma::Transport &&transport);

    rpma_conn(const rpma_peer &peer, rpma::Transport &&transport);

    // False: RPMA_E_PROVIDER.
    bool connect(rpma::Call &call, rdma_conn_param &param) {
        return transport_.id.connect(call, param);
    }
    bool accept(rpma::Call &call, rdma_conn_param &param) {
        return transport_.id.accept(call, param);
    }
    bool disconnect(rpma::Call &call) { return transport_.id.disconnect(call); }
    // Destroys everything and forgets it, also what the provider refuses. RPMA_E_PROVIDER.
    void release(rpma::Call &call) { transport_.release(call); }

    // RPMA_CONN_UNDEFINED: RPMA_E_NO_EVENT, RPMA_E_PROVIDER, RPMA_E_UNKNOWN.
    rpma_conn_event next_event(rpma::Call &call);
    int event_fd() const { return transport_.events->fd; }

    // The queue that has completions, taken from the shared channel. nullptr:
    // RPMA_E_NOT_SHARED_CHNL, RPMA_E_NO_COMPLETION, RPMA_E_UNKNOWN, RPMA_E_PROVIDER.
    rpma_cq *wait(rpma::Call &call);
    // The shared channel's descriptor. RPMA_E_NOT_SHARED_CHNL.
    int shared_fd(rpma::Call &call) const;

    rpma_cq *cq() const { return &transport_.cq(); }
    rpma_cq *rcq() const { return transport_.rcq(); }
    rpma_conn_private_data private_data() const { return transport_.received.view(); }
    uint32_t max_sge() const { return transport_.max_sge; } // elements of a work request
    uint32_t max_read_sge() const { return transport_.max_read_sge; }

    void allow_persistent_flush(bool allow);

    // What an operation needs stands first, so that it is in one cache line.
    ibv_qp *qp;
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    ibv_qp_ex *extended; // the same queue pair for what the device does itself, or nullptr
#endif
    // RPMA_MR_USAGE_FLUSH_TYPE_* bits of the flushes that may be posted; read_flushes is the
    // same while flushes are emulated, else 0: one question tells a flush that it may be such a
    // read.
    std::atomic<uint8_t> flush_types = 0;
    std::atomic<uint8_t> read_flushes = 0;
    rpma::FlushMode flush_mode = rpma::FlushMode::EMULATED;
    bool writes_natively = false; // atomic writes
    std::atomic<bool> warned_of_misalignment = false;
    ibv_sge flush_read = {}; // where an emulated flush reads to

  private:
    bool is_shared(rpma::Call &call) const;

    rpma::FlushTargetUse flush_target_; // if flushes are emulated; goes after the queue pair
    rpma::Transport transport_;
};
