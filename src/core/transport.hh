// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// transport.hh -- what a connection consists of at the provider
//
// The members stand in the order in which they are acquired. They are released in reverse
// order.

#pragma once

#include <optional>

#include "core/config.hh"
#include "core/cq.hh"
#include "core/received.hh"
#include "verbs/cm.hh"

struct rpma_peer;

namespace rpma {

// False (RPMA_E_INVAL) if a connection of peer cannot have the completion queues of cfg. A
// shared completion channel serves the connection's own only, those of the program and of an
// SRQ have a channel of their own; receives complete in one queue; a queue of the program is
// one of rpma_cq_new(); it and the SRQ are on the device of peer.
bool check_queues(Call &call, const rpma_peer &peer, const rpma_conn_cfg &cfg);

struct Transport {
    explicit Transport(CmId &&cm_id) : id(std::move(cm_id)) {}

    // Makes queues and queue pair of peer, for a connection that flushes like this. False, and
    // nothing of them is left: RPMA_E_INVAL, RPMA_E_PROVIDER.
    bool make_queue_pair(Call &call, const rpma_peer &peer, const rpma_conn_cfg &cfg,
                         rpma_flush_mode flush_mode);

    // What the queue pair can do by itself.
    bool flushes_natively() const;
    bool writes_natively() const;

    // Destroys everything and forgets it, also what the provider refuses.
    void release(Call &call);

    // Not const: whoever has the connection may wait on its queues.
    rpma_cq &cq() const { return borrowed_cq ? *borrowed_cq : *own_cq; }
    // nullptr: receives complete in cq(), or in a queue that the SRQ owns.
    rpma_cq *rcq() const { return own_rcq ? &*own_rcq : borrowed_rcq.get(); }

    Received received;   // private data of the other side
    EventChannel events; // those of rpma_conn_req_new() have none before they connect
    CompChannel shared;  // only with a shared completion channel
    CmId id;
    CqUse borrowed_cq; // once set up there is a main CQ, of the program or the own one
    CqUse borrowed_rcq;
    CqUse srq_rcq; // that the SRQ owns: receives complete there
    mutable std::optional<rpma_cq> own_cq;
    mutable std::optional<rpma_cq> own_rcq; // only with a receive CQ of the connection
    QueuePair qp;
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    ibv_qp_ex *extended; // the same queue pair for what the device does itself, or nullptr
#endif
    ibv_qp_cap granted;    // to the queue pair, by the device
    uint16_t max_sge;      // pieces of local memory of an operation
    uint16_t max_read_sge; // pieces that a read may have

  private:
    bool try_queue_pair(Call &call, const rpma_peer &peer, const rpma_conn_cfg &cfg,
                        rpma_flush_mode flush_mode);
    bool create_queues(Call &call, const rpma_peer &peer, const rpma_conn_cfg &cfg,
                       const rpma_srq *srq);
    bool create_receive_queue(Call &call, const Demand &size);
};

} // namespace rpma
