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

// What both the build and the device can do.
struct rpma_capabilities {
    bool on_demand_paging = false;
    bool atomic_write = false;
    bool flush = false;
    uint32_t max_cq_size = 0;
};

struct rpma_peer : rpma::Allocated {
    // RPMA_E_NOMEM, RPMA_E_PROVIDER, RPMA_E_UNKNOWN.
    static rpma::Result<std::unique_ptr<rpma_peer>> create(ibv_context &device);

    rpma_peer(rpma::verbs::Pd &&domain, rpma_capabilities capabilities);

    // Releases everything; what the provider refuses stays, so that a retry works.
    rpma::Status close();

    // RPMA_E_NOMEM, RPMA_E_PROVIDER.
    rpma::Result<std::unique_ptr<rpma_mr_local>> register_memory(void *ptr, std::size_t size,
                                                                 int usage) const;

    // Gives id a queue pair with the sizes of cfg; receive_cq and srq as they are.
    rpma::Result<rpma::verbs::QueuePair> create_qp(rdma_cm_id &id, const rpma_conn_cfg &cfg,
                                                   ibv_cq &cq, ibv_cq &receive_cq,
                                                   ibv_srq *srq) const;

    // The peer must outlive the use. RPMA_E_NOMEM, RPMA_E_PROVIDER.
    rpma::Result<rpma::FlushTargetUse> use_flush_target();

    ibv_pd &pd() const { return *pd_.get(); }
    uint32_t max_cq_size() const { return device_.max_cq_size; }

  private:
    unsigned access_flags(int usage) const;
    // What to ask for after the device refused access with error; the same: give up.
    unsigned retry_access(unsigned access, int error) const;

    rpma::verbs::Pd pd_;
    rpma::FlushTarget flush_target_;
    rpma_capabilities device_;
    bool flush_natively_; // what connections of this side do
};

// Whether a device serves reads and writes of reliable connections by on-demand paging.
bool rpma_is_odp_capable(const ibv_device_attr_ex &attributes);
