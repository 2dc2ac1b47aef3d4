// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_req.hh -- a connection request: outgoing ones connect, incoming ones accept
//
// Thread-safety: one thread at a time.

#pragma once

#include "base/memory.hh"
#include "core/conn.hh"

struct rpma_peer;

struct rpma_conn_req : rpma::Allocated {
    // Resolves addr and port and prepares everything. Returns nullptr on failure: RPMA_E_INVAL,
    // RPMA_E_NOMEM, RPMA_E_NOSUPP, RPMA_E_PROVIDER.
    static std::unique_ptr<rpma_conn_req> outgoing(rpma::Call &call, rpma_peer &peer,
                                                   const char *addr, const char *port,
                                                   const rpma_conn_cfg &cfg);

    // Takes over the ID of a CONNECT_REQUEST event, which is acknowledged in any case; on
    // failure the other side is rejected. Returns nullptr on failure: RPMA_E_INVAL,
    // RPMA_E_NOMEM, RPMA_E_PROVIDER.
    static std::unique_ptr<rpma_conn_req> incoming(rpma::Call &call, rpma_peer &peer,
                                                   rpma::CmEvent &&event,
                                                   const rpma_conn_cfg &cfg);

    rpma_conn_req(rpma_peer &peer, std::unique_ptr<rpma_conn> &&conn, const rpma_conn_cfg &cfg)
        : conn_(std::move(conn)), peer_(peer), retry_count_(cfg.retry_count),
          rnr_retry_count_(cfg.rnr_retry_count) {}

    // Connects or accepts; the request must be deleted afterwards, whatever came out. nullptr:
    // RPMA_E_NOMEM, RPMA_E_PROVIDER.
    std::unique_ptr<rpma_conn> connect(rpma::Call &call, const rpma_conn_private_data *pdata);

    // Destroys everything and forgets it, also what the provider refuses. RPMA_E_PROVIDER.
    void release(rpma::Call &call) { conn_->release(call); }

    rpma_conn_private_data private_data() const { return conn_->private_data(); }
    ibv_qp &qp() const { return *conn_->qp; }
    uint32_t max_sge() const { return conn_->max_sge; } // pieces of a receive
    const sockaddr_storage &peer_addr() const { return conn_->id()->route.addr.dst_storage; }

  private:
    rdma_conn_param parameters(const rpma_conn_private_data *pdata) const;

    std::unique_ptr<rpma_conn> conn_; // until it is connected
    rpma_peer &peer_;
    uint8_t retry_count_;
    uint8_t rnr_retry_count_;
};
