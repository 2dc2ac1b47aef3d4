// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer_event.cc -- events of a device, and the handles of their objects

#include "base/probes.hh"
#include "core/handle_entry.hh"
#include "core/peer.hh"
#include "verbs/text.hh"

using namespace rpma;

namespace {

enum class EventSource { DEVICE, PORT, QP, CQ, SRQ, WQ }; // no handle has a WQ

struct PeerEvent {
    rpma_peer_event_type type;
    EventSource source;
    rpma_log_level level;
};

PeerEvent to_peer_event(int ibv_event) {
    switch (ibv_event) {
    case IBV_EVENT_PORT_ACTIVE:
        return {RPMA_PEER_EVENT_PORT_UP, EventSource::PORT, RPMA_LOG_LEVEL_NOTICE};
    case IBV_EVENT_PORT_ERR:
        return {RPMA_PEER_EVENT_PORT_DOWN, EventSource::PORT, RPMA_LOG_LEVEL_WARNING};
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
        return {RPMA_PEER_EVENT_ADDR_CHANGED, EventSource::PORT, RPMA_LOG_LEVEL_NOTICE};
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        return {RPMA_PEER_EVENT_OTHER, EventSource::PORT, RPMA_LOG_LEVEL_NOTICE};
    case IBV_EVENT_DEVICE_FATAL:
        return {RPMA_PEER_EVENT_DEVICE_GONE, EventSource::DEVICE, RPMA_LOG_LEVEL_WARNING};
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        return {RPMA_PEER_EVENT_QP_ERROR, EventSource::QP, RPMA_LOG_LEVEL_WARNING};
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return {RPMA_PEER_EVENT_OTHER, EventSource::QP, RPMA_LOG_LEVEL_NOTICE};
    case IBV_EVENT_CQ_ERR:
        return {RPMA_PEER_EVENT_CQ_ERROR, EventSource::CQ, RPMA_LOG_LEVEL_WARNING};
    case IBV_EVENT_SRQ_ERR:
        return {RPMA_PEER_EVENT_SRQ_ERROR, EventSource::SRQ, RPMA_LOG_LEVEL_WARNING};
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return {RPMA_PEER_EVENT_SRQ_LIMIT, EventSource::SRQ, RPMA_LOG_LEVEL_NOTICE};
    case IBV_EVENT_WQ_FATAL:
        return {RPMA_PEER_EVENT_OTHER, EventSource::WQ, RPMA_LOG_LEVEL_NOTICE};
    default: // an event that a later release of libibverbs added
        return {RPMA_PEER_EVENT_OTHER, EventSource::DEVICE, RPMA_LOG_LEVEL_NOTICE};
    }
}

void report_no_event(Call &call, int error) {
    if (error == EAGAIN || error == EWOULDBLOCK) // GCOVR_EXCL_BR_LINE: the same on Linux
        RPMA_WOULD_BLOCK(call, RPMA_E_NO_EVENT, error, "ibv_get_async_event()");
    else if (error == EINTR) // a loop that waits for a signal expects EINTR
        RPMA_INTERRUPTED(call, "ibv_get_async_event()");
    else
        RPMA_FAIL(call, RPMA_E_PROVIDER, error, "ibv_get_async_event()");
}

// The object and its handle exist until the acknowledgement. If the program is deleting the
// handle, its entry is already removed.
void set_source(rpma_peer_event &event, EventSource source,
                const ibv_async_event &async_event) {
    if (source == EventSource::PORT)
        event.port = static_cast<uint32_t>(async_event.element.port_num);
    if (source == EventSource::DEVICE || source == EventSource::PORT)
        return;
    // All pointers of the union have the same address.
    event.ibv_object = async_event.element.qp;
    void *const handle = handle_of(event.ibv_object);
    if (source == EventSource::QP)
        event.conn = static_cast<rpma_conn *>(handle);
    else if (source == EventSource::CQ)
        event.cq = static_cast<rpma_cq *>(handle);
    else if (source == EventSource::SRQ)
        event.srq = static_cast<rpma_srq *>(handle);
}

Text source_text(const ibv_context &device, uint32_t port) {
    Text text;
    text.add("%s", ibv_get_device_name(device.device));
    if (port != 0)
        text.add(", port %u", port);
    return text;
}

} // namespace

bool rpma_peer::next_event(Call &call, rpma_peer_event &event) const {
    ibv_context &device = *pd_->context;
    ibv_async_event async_event = {};
    if (ibv_get_async_event(&device, &async_event) != 0) {
        report_no_event(call, errno);
        return false;
    }
    const PeerEvent reported = to_peer_event(async_event.event_type);
    event = {};
    event.type = reported.type;
    event.ibv_event = async_event.event_type;
    set_source(event, reported.source, async_event);
    // Acknowledge before the log function or the program may delete the object: its deletion
    // waits for the acknowledgement.
    ibv_ack_async_event(&async_event);
    probe::device_event(ibv_get_device_name(device.device), event.ibv_event, event.port,
                        event.ibv_object);
    RPMA_LOG(reported.level, call.function(), "%s (event %d of libibverbs) on %s",
             ibv_event_type_str(async_event.event_type), async_event.event_type,
             source_text(device, event.port).chars);
    return true;
}
