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

struct rpma_conn : rpma::Allocated {
    // RPMA_E_NOMEM, RPMA_E_PROVIDER.
    static rpma::Result<std::unique_ptr<rpma_conn>> create(rpma_peer &peer,
                                                           rpma::Transport &&transport);

    explicit rpma_conn(rpma::Transport &&transport);

    rpma::Status connect(rdma_conn_param &param) { return transport_.id.connect(param); }
    rpma::Status accept(rdma_conn_param &param) { return transport_.id.accept(param); }
    rpma::Status disconnect();
    // Releases what it can and forgets the rest; the first failure counts.
    rpma::Status close() { return transport_.close(); }

    // RPMA_E_NO_EVENT, RPMA_E_PROVIDER, RPMA_E_UNKNOWN.
    rpma::Result<rpma_conn_event> next_event();
    int event_fd() const { return transport_.events->fd; }

    // The queue that has completions, taken from the shared channel.
    // RPMA_E_NO_COMPLETION, RPMA_E_UNKNOWN, RPMA_E_PROVIDER.
    rpma::Result<rpma_cq *> wait();
    // nullptr: the CQs have a channel each.
    ibv_comp_channel *shared_channel() const { return transport_.shared.get(); }

    rpma_cq *cq() { return &*transport_.cq; }
    rpma_cq *rcq() { return transport_.rcq ? &*transport_.rcq : nullptr; }
    rpma_conn_private_data private_data() const { return transport_.received.view(); }

    void allow_persistent_flush(bool allow);

    // What an operation needs stands first, so that it is in one cache line.
    ibv_qp *qp;
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    ibv_qp_ex *extended; // the same queue pair for what the device does itself, or nullptr
#endif
    // RPMA_MR_USAGE_FLUSH_TYPE_* bits of the flushes that may be posted, either as reads or by
    // the device itself: one question tells what to do, so that a read need not ask twice.
    std::atomic<uint8_t> emulated_flushes{};
    std::atomic<uint8_t> native_flushes{};
    bool writes_natively{}; // atomic writes
    std::atomic<bool> warned_of_misalignment = false;
    ibv_sge flush_read = {}; // where an emulated flush reads to

  private:
    bool flushes_natively() const;

    std::optional<rpma::FlushTargetUse> flush_target_; // only if flushes are emulated
    rpma::Transport transport_;
};
