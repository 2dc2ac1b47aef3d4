// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// ep.cc -- listening and incoming requests

#include "core/ep.hh"

#include "core/conn_req.hh"
#include "verbs/address.hh"

namespace {

rpma::Result<rpma::verbs::CmId> listen_at(sockaddr *address, rdma_event_channel *channel) {
    auto id = rpma::verbs::CmId::create(channel);
    if (!id)
        return id;
    if (rdma_bind_addr(id->get(), address) != 0)
        return rpma::verbs::failed("rdma_bind_addr()");
    if (rdma_listen(id->get(), 0) != 0)
        return rpma::verbs::failed("rdma_listen()");
    return id;
}

} // namespace

rpma::Result<std::unique_ptr<rpma_ep>> rpma_ep::listen(rpma_peer &peer, const char *addr,
                                                       const char *port) {
    auto events = rpma::verbs::create_event_channel();
    if (!events)
        return rpma::fail(events.error());
    auto names = rpma::verbs::resolve_name(addr, port, rpma::verbs::Side::LOCAL);
    if (!names)
        return rpma::fail(names.error());
    auto id = try_each(
        *names, [&](const addrinfo &name) { return listen_at(name.ai_addr, events->get()); });
    if (!id)
        return rpma::fail(id.error());
    return rpma::make<rpma_ep>(peer, std::move(*events), std::move(*id));
}

rpma::Result<std::unique_ptr<rpma_conn_req>> rpma_ep::next_request(const rpma_conn_cfg &cfg) {
    auto event = rpma::verbs::next_event(*events_.get());
    if (!event)
        return rpma::fail(event.error());
    const rdma_cm_event_type type = (*event)->event;
    if (type != RDMA_CM_EVENT_CONNECT_REQUEST)
        return rpma::fail(
            {RPMA_E_INVAL, "an event that is no request", 0, rdma_event_str(type)});
    return rpma_conn_req::incoming(peer_, std::move(*event), cfg);
}
