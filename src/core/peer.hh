// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.hh -- one RDMA device with a protection domain, and what the device can do
//
// Thread-safety: shared by any number of threads; only the deletion needs it alone.

#pragma once

#include "base/memory.hh"
#include "core/config.hh"
#include "core/flush_target.hh"
#include "core/mr.hh"
#include "verbs/cm.hh"
#include "verbs/objects.hh"

struct rpma_cq;

// What the device can do, as far as this build can use it, and its limits.
struct rpma_capabilities {
    bool on_demand_paging = false;
    bool atomic_write = false;
    bool flush = false;
    bool atomics = false; // fetch-and-add, compare-and-swap
    uint32_t max_cqe = 0;
    uint32_t max_qp_wr = 0;
    uint32_t max_srq_wr = 0;
    uint32_t max_sge = 1;      // elements of a work request
    uint32_t max_read_sge = 1; // elements of a read: iWARP reads into one piece of memory
    uint64_t max_mr_size = 0;
    uint32_t max_mr = 0, max_cq = 0, max_qp = 0, max_srq = 0; // of all programs together
    uint32_t max_srq_sge = 1; // elements of a receive in a shared receive queue
};

struct rpma_peer : rpma::Allocated {
    // Returns nullptr on failure: RPMA_E_NOMEM, RPMA_E_PROVIDER, RPMA_E_UNKNOWN.
    static std::unique_ptr<rpma_peer> create(rpma::Call &call, ibv_context &device);

    // flush_mode is the operator's choice.
    rpma_peer(rpma::Pd &&domain, const rpma_capabilities &device, rpma_flush_mode flush_mode)
        : pd_(std::move(domain)), device_(device), flush_mode_(flush_mode) {}

    // Releases everything; what the provider refuses stays, so that a retry works.
    // Returns false on failure: RPMA_E_PROVIDER.
    bool try_release(rpma::Call &call);

    // Returns nullptr on failure: RPMA_E_NOMEM, RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    std::unique_ptr<rpma_mr_local> register_memory(rpma::Call &call, void *ptr,
                                                   std::size_t size, int usage) const;

    // Gives id a queue pair of at least these capacities, which become its own, that does
    // operations natively, sends to cq and receives from srq, or its own queue, to receive_cq.
    // Returns an empty owner on failure: RPMA_E_PROVIDER.
    rpma::QueuePair create_qp(rpma::Call &call, rdma_cm_id &id, ibv_qp_cap &capacities,
                              uint64_t operations, ibv_cq &cq, ibv_cq &receive_cq,
                              ibv_srq *srq) const;

    // Returns how a connection flushes whose configuration asks for wanted. AUTO means
    // natively, unless the other side states that it does not serve that.
    rpma_flush_mode choose_flush(rpma_flush_mode wanted) const;

    // False (RPMA_E_NOSUPP) if the device has no flush.
    bool check_native_flush(rpma::Call &call) const;

    // Returns the operations (IBV_QP_EX_WITH_*) that the queue pair of a connection does by
    // itself if the connection flushes like this; 0 for a plain queue pair.
    uint64_t native_operations(rpma_flush_mode flush_mode) const;

    // What the device serves when the other side asks: SERVES with bits SERVES_*.
    uint8_t served() const;

    // Where the emulated flushes of its connections read to; the peer must outlive its users.
    rpma::FlushTarget &flush_target() { return flush_target_; }

    // Takes the next event of the device and acknowledges it. Returns false on failure:
    // RPMA_E_NO_EVENT, RPMA_E_PROVIDER.
    bool next_event(rpma::Call &call, rpma_peer_event &event) const;
    int event_fd() const { return pd_->context->async_fd; }

    ibv_pd &pd() const { return *pd_.get(); }
    const rpma_capabilities &device() const { return device_; }

  private:
    unsigned access_flags(int usage) const;
    // Returns the access to ask for next, after the device refused access with error; the same
    // access means to give up.
    unsigned retry_access(const rpma::Call &call, unsigned access, int error) const;

    rpma::Pd pd_;
    rpma::FlushTarget flush_target_;
    rpma_capabilities device_;
    rpma_flush_mode flush_mode_;
};

// Whether a device serves reads and writes of reliable connections by on-demand paging.
bool rpma_is_odp_capable(const ibv_device_attr_ex &attributes);
