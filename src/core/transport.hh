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

// Whether cfg asks for a shared completion channel and for an SRQ with a receive CQ, which has
// a channel of its own: the two cannot be combined.
bool has_channel_conflict(const rpma_conn_cfg &cfg);
inline constexpr Failure CHANNEL_CONFLICT = {
    RPMA_E_INVAL, "the completion channel is shared, but the SRQ owns a receive CQ"};

struct Transport {
    // Queues and queue pair of peer for id. RPMA_E_PROVIDER.
    static Result<Transport> create(const rpma_peer &peer, verbs::CmId &&id,
                                    const rpma_conn_cfg &cfg);

    // Releases what it can and forgets the rest; the first failure counts.
    Status close();

    PrivateData received;       // private data of the other side
    verbs::EventChannel events; // outgoing requests have none before they connect
    verbs::CompChannel shared;  // only with a shared completion channel
    verbs::CmId id;
    std::optional<rpma_cq> cq;  // always there once created
    std::optional<rpma_cq> rcq; // only with a receive CQ of the connection
    verbs::QueuePair qp;

  private:
    explicit Transport(verbs::CmId &&cm_id) : id(std::move(cm_id)) {}
    Status create_queues(const rpma_peer &peer, const rpma_conn_cfg &cfg, const rpma_srq *srq);
};

} // namespace rpma
