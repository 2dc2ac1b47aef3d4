// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn.cc -- life and events of a connection

#include "core/conn.hh"

#include "base/log.hh"
#include "core/peer.hh"

namespace {

// RPMA_CONN_UNDEFINED: the event means nothing to a user of a connection.
rpma_conn_event meaning(rdma_cm_event_type type) {
    switch (type) {
    case RDMA_CM_EVENT_ESTABLISHED:
        return RPMA_CONN_ESTABLISHED;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
        return RPMA_CONN_CLOSED;
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        return RPMA_CONN_LOST;
    case RDMA_CM_EVENT_REJECTED:
        return RPMA_CONN_REJECTED;
    case RDMA_CM_EVENT_UNREACHABLE:
        return RPMA_CONN_UNREACHABLE;
    default:
        return RPMA_CONN_UNDEFINED;
    }
}

} // namespace

rpma_conn::rpma_conn(rpma::Transport &&transport)
    : qp(transport.id->qp), transport_(std::move(transport)) {
#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
    extended = ibv_qp_to_qp_ex(qp);
#endif
#ifdef RPMA_NATIVE_ATOMIC_WRITE
    writes_natively = extended != nullptr && extended->wr_atomic_write != nullptr;
#endif
    allow_persistent_flush(false);
}

bool rpma_conn::flushes_natively() const {
#ifdef RPMA_NATIVE_FLUSH
    return extended != nullptr && extended->wr_flush != nullptr;
#else
    return false;
#endif
}

rpma::Result<std::unique_ptr<rpma_conn>> rpma_conn::create(rpma_peer &peer,
                                                           rpma::Transport &&transport) {
    auto conn = rpma::make<rpma_conn>(std::move(transport));
    if (!conn || (*conn)->flushes_natively())
        return conn;
    auto target = peer.use_flush_target();
    if (!target)
        return rpma::fail(target.error());
    (*conn)->flush_read = {target->mr().addr, rpma::FLUSH_READ_SIZE, target->mr().lkey};
    (*conn)->flush_target_.emplace(std::move(*target));
    return conn;
}

rpma::Status rpma_conn::disconnect() {
    return rpma::verbs::check_errno("rdma_disconnect()", rdma_disconnect(transport_.id.get()));
}

rpma::Result<rpma_conn_event> rpma_conn::next_event() {
    auto event = rpma::verbs::next_event(*transport_.events.get());
    if (!event)
        return rpma::fail(event.error());
    const rdma_cm_event_type type = (*event)->event;
    const char *name = rdma_event_str(type);

    const rdma_conn_param &param = (*event)->param.conn;
    const bool brings_data = type == RDMA_CM_EVENT_ESTABLISHED && transport_.received.empty();
    auto received = brings_data
                        ? rpma::PrivateData::copy(param.private_data, param.private_data_len)
                        : rpma::Result<rpma::PrivateData>(rpma::PrivateData());

    rpma::Status acknowledged = event->close();
    if (!acknowledged)
        return rpma::fail(acknowledged.error());
    // An event that was taken cannot come again: it counts more than the data.
    if (!received)
        RPMA_LOG(RPMA_LOG_LEVEL_WARNING, "rpma_conn_next_event",
                 "out of memory: the connection is established without the private data");
    else if (brings_data)
        transport_.received = std::move(*received);

    const rpma_conn_event result = meaning(type);
    if (result == RPMA_CONN_UNDEFINED)
        return rpma::fail({RPMA_E_UNKNOWN, "an event without a meaning here", 0, name});
    RPMA_LOG(RPMA_LOG_LEVEL_NOTICE, "rpma_conn_next_event", "%s", name);
    return result;
}

rpma::Result<rpma_cq *> rpma_conn::wait() {
    auto queue = rpma::next_cq_event(*transport_.shared.get());
    if (!queue)
        return rpma::fail(queue.error());

    rpma_cq *found = nullptr;
    if (cq()->is(*queue))
        found = cq();
    else if (rcq() != nullptr && rcq()->is(*queue))
        found = rcq();
    if (found == nullptr) {
        ibv_ack_cq_events(*queue, 1);
        return rpma::fail({RPMA_E_UNKNOWN, "an event of a CQ that is not the connection's"});
    }
    rpma::Status taken = found->take_event();
    if (!taken)
        return rpma::fail(taken.error());
    return found;
}

void rpma_conn::allow_persistent_flush(bool allow) {
    uint8_t types = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    if (allow)
        types |= RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    auto &flushes = flushes_natively() ? native_flushes : emulated_flushes;
    flushes.store(types, std::memory_order_relaxed);
}
