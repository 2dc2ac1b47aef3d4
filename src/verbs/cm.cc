// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm.cc -- calls of librdmacm

#include "verbs/cm.hh"

namespace rpma::verbs {

Result<EventChannel> create_event_channel() {
    rdma_event_channel *channel = rdma_create_event_channel();
    if (channel == nullptr)
        return failed("rdma_create_event_channel()");
    return EventChannel(channel);
}

Result<CmEvent> next_event(rdma_event_channel &channel) {
    rdma_cm_event *event = nullptr;
    if (rdma_get_cm_event(&channel, &event) == 0)
        return CmEvent(event);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENODATA)
        return fail({RPMA_E_NO_EVENT, "rdma_get_cm_event()", errno});
    // A server that loops until a signal's handler has set a flag asks for this.
    return fail({RPMA_E_PROVIDER, "rdma_get_cm_event()", errno, nullptr, errno == EINTR});
}

Result<CmId> CmId::create(rdma_event_channel *channel) {
    rdma_cm_id *id = nullptr;
    if (rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) != 0)
        return failed("rdma_create_id()");
    return CmId(id, false);
}

Status CmId::migrate(const EventChannel &channel) {
    return check_errno("rdma_migrate_id()", rdma_migrate_id(id_, channel.get()));
}

Status CmId::connect(rdma_conn_param &param) {
    return check_errno("rdma_connect()", rdma_connect(id_, &param));
}

Status CmId::accept(rdma_conn_param &param) {
    Status status = check_errno("rdma_accept()", rdma_accept(id_, &param));
    if (status)
        pending_ = false;
    return status;
}

Status CmId::close() {
    rdma_cm_id *id = std::exchange(id_, nullptr);
    if (id == nullptr)
        return {};
    FirstFailure first;
    if (pending_)
        first.note(check_errno("rdma_reject()", rdma_reject(id, nullptr, 0)));
    first.note(check_errno("rdma_destroy_id()", rdma_destroy_id(id)));
    return first.status();
}

Status CmId::try_close() {
    Status status = check_errno("rdma_destroy_id()", rdma_destroy_id(id_));
    if (status)
        id_ = nullptr;
    return status;
}

} // namespace rpma::verbs
