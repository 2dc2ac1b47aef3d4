// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// ep.hh -- a listening endpoint
//
// Thread-safety: one thread at a time.

#pragma once

#include "base/allocation.hh"
#include "core/config.hh"
#include "verbs/cm.hh"

struct rpma_conn_req;
struct rpma_peer;

struct rpma_ep : rpma::Allocated {
    // Returns nullptr on failure: RPMA_E_NOMEM, RPMA_E_PROVIDER.
    static std::unique_ptr<rpma_ep> listen(rpma::Call &call, rpma_peer &peer, const char *addr,
                                           const char *port, const rpma::EpSettings &cfg);

    rpma_ep(rpma_peer &peer, rpma::EventChannel &&events, rpma::CmId &&id)
        : peer_(peer), events_(std::move(events)), id_(std::move(id)) {}

    int fd() const { return events_->fd; }
    const sockaddr_storage &addr() const { return id_.local_addr(); }
    // Takes a connection request, and sets it up if has_queues is set. Reads cfg after the
    // request has arrived. Returns nullptr on failure: RPMA_E_INVAL, RPMA_E_NO_EVENT,
    // RPMA_E_NOMEM, RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    std::unique_ptr<rpma_conn_req> next_request(rpma::Call &call, bool has_queues,
                                                const rpma_conn_cfg *cfg);
    // Stops listening. Returns false if the provider refuses, and the endpoint is unchanged:
    // RPMA_E_PROVIDER.
    bool try_release(rpma::Call &call) { return id_.try_release(call); }

  private:
    rpma_peer &peer_;
    rpma::EventChannel events_;
    rpma::CmId id_;
};
