// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// ep.hh -- a listening endpoint
//
// Thread-safety: one thread at a time.

#pragma once

#include "base/memory.hh"
#include "core/config.hh"
#include "verbs/cm.hh"

struct rpma_conn_req;
struct rpma_peer;

struct rpma_ep : rpma::Allocated {
    // RPMA_E_NOMEM, RPMA_E_PROVIDER.
    static rpma::Result<std::unique_ptr<rpma_ep>> listen(rpma_peer &peer, const char *addr,
                                                         const char *port);

    rpma_ep(rpma_peer &peer, rpma::verbs::EventChannel &&events, rpma::verbs::CmId &&id)
        : peer_(peer), events_(std::move(events)), id_(std::move(id)) {}

    int fd() const { return events_->fd; }
    // RPMA_E_INVAL, RPMA_E_NO_EVENT, RPMA_E_NOMEM, RPMA_E_PROVIDER.
    rpma::Result<std::unique_ptr<rpma_conn_req>> next_request(const rpma_conn_cfg &cfg);
    // Stops listening; everything stays when the provider refuses.
    rpma::Status close() { return id_.try_close(); }

  private:
    rpma_peer &peer_;
    rpma::verbs::EventChannel events_;
    rpma::verbs::CmId id_;
};
