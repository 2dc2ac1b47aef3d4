// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// transport.hh -- the provider's objects of a connection
//
// The members are in the order of their acquisition, and are released in reverse order.

#pragma once

#include <optional>

#include "core/config.hh"
#include "core/cq.hh"
#include "core/received.hh"
#include "verbs/cm.hh"

struct rpma_peer;

namespace rpma {

// Returns false (RPMA_E_INVAL) if a connection of peer cannot use the completion queues of cfg.
// The rules: only the connection's own queues can use a shared completion channel, because
// those of the program and of an SRQ have their own channels; receives complete in one queue; a
// queue of the program comes from rpma_cq_new(); this queue and the SRQ are on the device of
// peer.
bool check_queues(Call &call, const rpma_peer &peer, const ConnSettings &cfg);

struct Transport {
    explicit Transport(CmId &&cm_id) : id(std::move(cm_id)) {}

    // Creates the queues and the queue pair of peer, for a connection with this flush mode.
    // Returns false on failure, and no object remains: RPMA_E_INVAL, RPMA_E_PROVIDER.
    bool make_queue_pair(Call &call, const rpma_peer &peer, const ConnSettings &cfg,
                         rpma_flush_mode flush_mode);

    // The native operations of the queue pair.
    bool flushes_natively() const;
    bool writes_natively() const;

    // Destroys all objects and drops their pointers even if the provider fails.
    void release(Call &call);

    // Not const: the user of a connection may wait on its queues.
    rpma_cq &cq() const { return borrowed_cq ? *borrowed_cq : *own_cq; }
    // nullptr: receives complete in cq(), or in a queue that the SRQ owns
    rpma_cq *rcq() const { return own_rcq ? &*own_rcq : borrowed_rcq.get(); }

    Received received;   // the other side's private data
    EventChannel events; // empty for rpma_conn_req_new() until the request connects
    CompChannel shared;  // only with a shared completion channel
    CmId id;
    CqUse borrowed_cq; // once set up, either borrowed_cq or own_cq exists
    CqUse borrowed_rcq;
    CqUse srq_rcq; // the CQ of the SRQ, if receives complete there
    mutable std::optional<rpma_cq> own_cq;
    mutable std::optional<rpma_cq> own_rcq; // only if the connection has a receive CQ of its
                                            // own
    QueuePair qp;
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    ibv_qp_ex *extended; // the same queue pair for native operations, or nullptr
#endif
    ibv_qp_cap granted;    // the capacities that the device granted to the queue pair
    uint16_t max_sge;      // SGEs of an operation
    uint16_t max_read_sge; // SGEs of a read

  private:
    bool try_queue_pair(Call &call, const rpma_peer &peer, const ConnSettings &cfg,
                        rpma_flush_mode flush_mode);
    bool create_queues(Call &call, const rpma_peer &peer, const ConnSettings &cfg,
                       const rpma_srq *srq);
    bool create_receive_queue(Call &call, const Demand &size);
};

} // namespace rpma
