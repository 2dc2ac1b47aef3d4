// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// ep.cc -- listening and incoming requests

#include "core/ep.hh"

#include "core/conn_req.hh"
#include "verbs/address.hh"
#include "verbs/text.hh"

using namespace rpma;

std::unique_ptr<rpma_ep> rpma_ep::listen(Call &call, rpma_peer &peer, const char *addr,
                                         const char *port, const EpSettings &cfg) {
    EventChannel events = create_event_channel(call);
    if (!events)
        return nullptr;
    AddressList addresses = resolve_name(call, addr, port, Side::LOCAL);
    if (!addresses)
        return nullptr;
    CmId id = try_each_address(call, addresses, [&](const addrinfo &address) {
        CmId created = CmId::create(call, events.get(), SERVER);
        if (!created ||
            (cfg.ipv6_only && address.ai_family == AF_INET6 && !created.set_ipv6_only(call)) ||
            !created.bind(call, address.ai_addr) || !created.listen(call, cfg.backlog))
            return CmId();
        return created;
    });
    if (!id)
        return nullptr;
    return make<rpma_ep>(call, peer, std::move(events), std::move(id));
}

std::unique_ptr<rpma_conn_req> rpma_ep::next_request(Call &call, bool has_queues,
                                                     const rpma_conn_cfg *cfg) {
    CmEvent event = next_event(call, *events_.get());
    if (!event)
        return nullptr;
    if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
        if (!has_queues)
            return rpma_conn_req::incoming(call, peer_, std::move(event), nullptr);
        const ConnSettings settings = settings_of(cfg);
        return rpma_conn_req::incoming(call, peer_, std::move(event), &settings);
    }
    if (event->event == RDMA_CM_EVENT_ADDR_CHANGE)
        skip_addr_change(call, std::move(event));
    else
        RPMA_FAIL(call, RPMA_E_INVAL, 0, "%s is not a request%s; %s",
                  rdma_event_str(event->event),
                  status_text(event->event, event->status, nullptr, false).chars,
                  event->event == RDMA_CM_EVENT_DEVICE_REMOVAL
                      ? "the endpoint receives no more requests"
                      : "call again");
    return nullptr;
}
