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

// So much above the places of FlushWay stand the flushes of a connection that has not flushed
// yet, if the other side did not state that it serves them.
inline constexpr unsigned FLUSH_UNTRIED = 16;

// What rpma_utils_conn_event_2str() says.
const char *event_text(rpma_conn_event event);

} // namespace rpma

struct rpma_conn : rpma::Allocated {
    // nullptr: RPMA_E_NOMEM, RPMA_E_PROVIDER.
    static std::unique_ptr<rpma_conn> create(rpma::Call &call, rpma_peer &peer,
                                             rpma::Transport &&transport,
                                             rpma_flush_mode flush_mode);

    rpma_conn(const rpma_peer &peer, rpma::Transport &&transport, rpma_flush_mode flush_mode);

    // False: RPMA_E_PROVIDER.
    bool connect(rpma::Call &call, rdma_conn_param &param) {
        return transport_.id.connect(call, param);
    }
    bool accept(rpma::Call &call, rdma_conn_param &param) {
        return transport_.id.accept(call, param);
    }
    // RPMA_E_PROVIDER.
    void disconnect(rpma::Call &call) {
        explain_flushes(call);
        transport_.id.disconnect(call);
    }
    // Destroys everything and forgets it, also what the provider refuses. RPMA_E_PROVIDER.
    void release(rpma::Call &call) {
        explain_flushes(call);
        transport_.release(call);
    }

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
    uint32_t max_qp_wr() const { return transport_.max_qp_wr; } // of the device

    // Goes by what the other side states: direct write to PMem, and what its device serves
    // (SERVES_*).
    void apply(const rpma::Call &call, bool direct_write_to_pmem, uint8_t served);
    // RPMA_MR_USAGE_FLUSH_TYPE_* bits of the flushes that are allowed, whatever way they go;
    // other bits mean nothing.
    uint32_t allowed_flushes() const {
        const uint32_t word = flushes.load(std::memory_order_relaxed);
        const uint32_t types = word | word >> rpma::FLUSH_UNTRIED;
        return types | types >> rpma::FLUSH_NATIVELY;
    }
    // Puts untried flushes in the place of the others, and remembers that they were tried.
    void begin_flushes();

    // What an operation needs stands first, so that it is in one cache line.
    ibv_qp *qp;
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    ibv_qp_ex *extended; // the same queue pair for what the device does itself, or nullptr
#endif
    ibv_sge flush_read = {}; // where an emulated flush reads to
    // The flushes that may be posted, by FlushWay. The reads stand lowest, so that one
    // question tells a flush that it may be such a read. In one word, because they change
    // together.
    std::atomic<uint32_t> flushes = 0;
    // 1: atomic writes are the device's own. As a bit of a misaligned address, so that one
    // question finds both.
    std::atomic<uint8_t> writes_natively = 0;
    std::atomic<bool> warned_of_misalignment = false;

  private:
    bool is_shared(rpma::Call &call) const;
    // Before the queue pair goes: if an operation failed, says that it may have been a flush
    // which the other side does not serve.
    void explain_flushes(const rpma::Call &call);

    rpma_flush_mode flush_mode_ : 8; // AUTO and NATIVE: the queue pair flushes natively
    // Whether flushes began without a statement that they are served, and whether the end of
    // the connection was looked at already.
    enum : uint8_t { TRIED = 1, EXPLAINED = 2 };
    std::atomic<uint8_t> trial_ = 0;
    rpma::FlushTargetUse
        flush_target_; // not where flushes stay native; goes after the queue pair
    rpma::Transport transport_;
};
