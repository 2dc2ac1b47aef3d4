// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// transport.hh -- what a connection request collects and a connection takes over
//
// The members stand in the order in which they are acquired; they go in reverse.

#pragma once

#include <optional>

#include "core/config.hh"
#include "core/cq.hh"
#include "core/private_data.hh"
#include "verbs/cm.hh"

struct rpma_peer;

namespace rpma {

// False (RPMA_E_INVAL) if cfg asks for a shared completion channel and for an SRQ with a
// receive CQ, which has a channel of its own: the two cannot be combined.
bool check_channels(Call &call, const rpma_conn_cfg &cfg);

struct Transport {
    // Queues and queue pair of peer for id. Nothing: RPMA_E_INVAL, RPMA_E_PROVIDER.
    static std::optional<Transport> create(Call &call, const rpma_peer &peer, CmId &&id,
                                           const rpma_conn_cfg &cfg);

    // Destroys everything and forgets it, also what the provider refuses.
    void release(Call &call);

    PrivateData received; // private data of the other side
    EventChannel events;  // outgoing requests have none before they connect
    CompChannel shared;   // only with a shared completion channel
    CmId id;
    // Who may see the connection may wait on its queues.
    mutable std::optional<rpma_cq> cq;  // always there once created
    mutable std::optional<rpma_cq> rcq; // only with a receive CQ of the connection
    QueuePair qp;
    uint32_t max_sge;      // elements of a work request
    uint32_t max_read_sge; // elements that a read may have

  private:
    explicit Transport(CmId &&cm_id) : id(std::move(cm_id)) {}
    bool create_queues(Call &call, const rpma_peer &peer, const rpma_conn_cfg &cfg,
                       const rpma_srq *srq);
};

} // namespace rpma
