// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm.hh -- owners of the objects of librdmacm: event channels, events, CM IDs, queue pairs

#pragma once

#include <rdma/rdma_cma.h>

#include "verbs/owner.hh"

namespace rpma::verbs {

struct EventChannelTraits {
    using Object = rdma_event_channel;
    static Status destroy(rdma_event_channel *channel) {
        rdma_destroy_event_channel(channel);
        return {};
    }
};
using EventChannel = Owner<EventChannelTraits>;

Result<EventChannel> create_event_channel();

struct CmEventTraits {
    using Object = rdma_cm_event;
    static Status destroy(rdma_cm_event *event) {
        return check_errno("rdma_ack_cm_event()", rdma_ack_cm_event(event));
    }
};
// Closing an event acknowledges it; what it points to is gone then.
using CmEvent = Owner<CmEventTraits>;

// Blocks unless the descriptor of the channel is O_NONBLOCK. RPMA_E_NO_EVENT when there is
// nothing to read, RPMA_E_PROVIDER with EINTR when a signal ended the wait.
Result<CmEvent> next_event(rdma_event_channel &channel);

// A CM ID. One that came with a connection request is rejected before it is destroyed, as long
// as it was not accepted.
class CmId {
  public:
    CmId() = default;
    static CmId incoming(rdma_cm_id *id) { return CmId(id, true); }
    // Without a channel the calls on the ID are synchronous.
    static Result<CmId> create(rdma_event_channel *channel);

    CmId(CmId &&other) noexcept
        : id_(std::exchange(other.id_, nullptr)), pending_(other.pending_) {}
    CmId &operator=(CmId &&) = delete;
    ~CmId() { (void)close(); }

    rdma_cm_id *get() const { return id_; }
    rdma_cm_id *operator->() const { return id_; }
    bool is_incoming() const { return pending_; }

    Status migrate(const EventChannel &channel);
    Status connect(rdma_conn_param &param);
    Status accept(rdma_conn_param &param);

    // Rejects what is pending, destroys the ID and forgets it; the first failure counts.
    Status close();
    // Destroys the ID; it stays owned when the provider refuses.
    Status try_close();

  private:
    CmId(rdma_cm_id *id, bool pending) : id_(id), pending_(pending) {}

    rdma_cm_id *id_ = nullptr;
    bool pending_ = false; // incoming and not accepted yet
};

struct QueuePairTraits {
    using Object = rdma_cm_id;
    static Status destroy(rdma_cm_id *id) {
        rdma_destroy_qp(id);
        return {};
    }
};
// The queue pair of a CM ID; it must go before the ID.
using QueuePair = Owner<QueuePairTraits>;

} // namespace rpma::verbs
