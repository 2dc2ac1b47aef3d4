// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.hh -- an RDMA device with a protection domain, and the capabilities of the device
//
// Thread-safety: any number of threads may share a peer; no other thread may use it
// while one deletes it.

#pragma once

#include "base/allocation.hh"
#include "core/config.hh"
#include "core/flush_target.hh"
#include "core/mr.hh"
#include "verbs/cm.hh"
#include "verbs/objects.hh"

struct rpma_cq;

namespace rpma {

// The capabilities of the device that this build supports, and its limits.
struct Capabilities {
    bool on_demand_paging = false;
    bool atomic_write = false;
    bool flush = false;
    bool atomics = false; // fetch-and-add, compare-and-swap
    uint32_t max_cqe = 0;
    uint32_t max_qp_wr = 0;
    uint32_t max_srq_wr = 0;
    uint32_t max_sge = 1;      // SGEs of a work request
    uint32_t max_read_sge = 1; // SGEs of a read: an iWARP read has a single destination
    uint64_t max_mr_size = 0;
    uint32_t max_mr = 0, max_cq = 0, max_qp = 0, max_srq = 0; // limits that all programs share
    uint32_t max_srq_sge = 1; // SGEs of a receive in a shared receive queue
};

// Returns true if the device serves reads and writes of reliable connections by on-demand
// paging.
bool is_odp_capable(const ibv_device_attr_ex &attributes);

} // namespace rpma

struct rpma_peer : rpma::Allocated {
    // Returns nullptr on failure: RPMA_E_NOMEM, RPMA_E_PROVIDER, RPMA_E_UNKNOWN.
    static std::unique_ptr<rpma_peer> create(rpma::Call &call, ibv_context &device);

    // flush_mode is the mode that the operator chose.
    rpma_peer(rpma::Pd &&domain, const rpma::Capabilities &device, rpma_flush_mode flush_mode)
        : pd_(std::move(domain)), device_(device), flush_mode_(flush_mode) {}

    // Releases all objects. Those that the provider refuses to release remain, so that a retry
    // is possible. Returns false on failure: RPMA_E_PROVIDER.
    bool try_release(rpma::Call &call);

    // Returns nullptr on failure: RPMA_E_NOMEM, RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    std::unique_ptr<rpma_mr_local> register_memory(rpma::Call &call, void *ptr,
                                                   std::size_t size, int usage) const;

    // Returns the flush mode of a connection whose configuration has the mode requested. AUTO
    // selects native flushes unless the other side advertises that it does not serve them.
    rpma_flush_mode choose_flush(rpma_flush_mode requested) const {
        if (device_.flush)
            return requested != RPMA_FLUSH_MODE_AUTO ? requested : flush_mode_;
        return RPMA_FLUSH_MODE_EMULATED;
    }

    // Returns false if the device has no native flush: RPMA_E_NOSUPP.
    bool check_native_flush(rpma::Call &call) const;

    // The operations that the device serves for the other side: SERVES with bits SERVES_*.
    uint8_t served() const;

    // The destination of the reads of its connections' emulated flushes. The peer must outlive
    // its users.
    rpma::FlushTarget &flush_target() { return flush_target_; }

    // Reads the next event of the device and acknowledges it. Returns false on failure:
    // RPMA_E_NO_EVENT, RPMA_E_PROVIDER.
    bool next_event(rpma::Call &call, rpma_peer_event &event) const;
    int event_fd() const { return pd_->context->async_fd; }

    ibv_pd &pd() const { return *pd_.get(); }
    const rpma::Capabilities &device() const { return device_; }

  private:
    unsigned access_flags(int usage) const;
    // Returns the access to request next, after the device refused access with error. The same
    // access means that no retry is possible.
    unsigned retry_access(const rpma::Call &call, unsigned access, int error) const;

    rpma::Pd pd_;
    rpma::FlushTarget flush_target_;
    rpma::Capabilities device_;
    rpma_flush_mode flush_mode_;
};
