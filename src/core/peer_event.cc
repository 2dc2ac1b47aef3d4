// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer_event.cc -- events of a device, and the handles of their objects

#include "base/probes.hh"
#include "core/handle_entry.hh"
#include "core/peer.hh"
#include "verbs/text.hh"

using namespace rpma;

namespace {

enum class About { DEVICE, PORT, QP, CQ, SRQ, WQ }; // no handle has a WQ

struct EventMeaning {
    rpma_peer_event_type type;
    About about;
    rpma_log_level level;
};

EventMeaning meaning_of(int ibv_event) {
    switch (ibv_event) {
    case IBV_EVENT_PORT_ACTIVE:
        return {RPMA_PEER_EVENT_PORT_UP, About::PORT, RPMA_LOG_LEVEL_NOTICE};
    case IBV_EVENT_PORT_ERR:
        return {RPMA_PEER_EVENT_PORT_DOWN, About::PORT, RPMA_LOG_LEVEL_WARNING};
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
        return {RPMA_PEER_EVENT_ADDR_CHANGED, About::PORT, RPMA_LOG_LEVEL_NOTICE};
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
        return {RPMA_PEER_EVENT_OTHER, About::PORT, RPMA_LOG_LEVEL_NOTICE};
    case IBV_EVENT_DEVICE_FATAL:
        return {RPMA_PEER_EVENT_DEVICE_GONE, About::DEVICE, RPMA_LOG_LEVEL_WARNING};
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        return {RPMA_PEER_EVENT_QP_ERROR, About::QP, RPMA_LOG_LEVEL_WARNING};
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return {RPMA_PEER_EVENT_OTHER, About::QP, RPMA_LOG_LEVEL_NOTICE};
    case IBV_EVENT_CQ_ERR:
        return {RPMA_PEER_EVENT_CQ_ERROR, About::CQ, RPMA_LOG_LEVEL_WARNING};
    case IBV_EVENT_SRQ_ERR:
        return {RPMA_PEER_EVENT_SRQ_ERROR, About::SRQ, RPMA_LOG_LEVEL_WARNING};
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return {RPMA_PEER_EVENT_SRQ_LIMIT, About::SRQ, RPMA_LOG_LEVEL_NOTICE};
    case IBV_EVENT_WQ_FATAL:
        return {RPMA_PEER_EVENT_OTHER, About::WQ, RPMA_LOG_LEVEL_NOTICE};
    default: // an event that a later release of libibverbs added
        return {RPMA_PEER_EVENT_OTHER, About::DEVICE, RPMA_LOG_LEVEL_NOTICE};
    }
}

void note_no_event(Call &call, int error) {
    if (error == EAGAIN || error == EWOULDBLOCK) // GCOVR_EXCL_BR_LINE: the same on Linux
        RPMA_WOULD_BLOCK(call, RPMA_E_NO_EVENT, error, "ibv_get_async_event()");
    else if (error == EINTR) // a loop that waits for a signal expects EINTR
        RPMA_INTERRUPTED(call, "ibv_get_async_event()");
    else
        RPMA_FAIL(call, RPMA_E_PROVIDER, error, "ibv_get_async_event()");
}

// The object exists until the acknowledgement, and so does its handle, unless the program is
// deleting the handle: its entry is removed first.
void find_handle(rpma_peer_event &event, About about, const ibv_async_event &source) {
    if (about == About::PORT)
        event.port = static_cast<uint32_t>(source.element.port_num);
    if (about == About::DEVICE || about == About::PORT)
        return;
    event.ibv_object = source.element.qp; // all pointers of the union have the same address
    void *const handle = handle_of(event.ibv_object);
    if (about == About::QP)
        event.conn = static_cast<rpma_conn *>(handle);
    else if (about == About::CQ)
        event.cq = static_cast<rpma_cq *>(handle);
    else if (about == About::SRQ)
        event.srq = static_cast<rpma_srq *>(handle);
}

Text place_text(const ibv_context &device, uint32_t port) {
    Text text;
    text.add("%s", ibv_get_device_name(device.device));
    if (port != 0)
        text.add(", port %u", port);
    return text;
}

} // namespace

bool rpma_peer::next_event(Call &call, rpma_peer_event &event) const {
    ibv_context &device = *pd_->context;
    ibv_async_event source = {};
    if (ibv_get_async_event(&device, &source) != 0) {
        note_no_event(call, errno);
        return false;
    }
    const EventMeaning means = meaning_of(source.event_type);
    event = {};
    event.type = means.type;
    event.ibv_event = source.event_type;
    find_handle(event, means.about, source);
    // Acknowledge before the log function or the program may delete the object: the deletion
    // waits for it.
    ibv_ack_async_event(&source);
    probe::device_event(ibv_get_device_name(device.device), event.ibv_event, event.port,
                        event.ibv_object);
    RPMA_LOG(means.level, call.function(), "%s (event %d of libibverbs) on %s",
             ibv_event_type_str(source.event_type), source.event_type,
             place_text(device, event.port).chars);
    return true;
}
