// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_req.cc -- from an address or a request event to a connection

#include "core/conn_req.hh"

#include "base/probes.hh"
#include "core/conn.hh"
#include "core/peer.hh"
#include "verbs/text.hh"

using namespace rpma;

namespace {

// Starts resolving an address. An ID without a channel has resolved it on return.
inline bool resolve_addr(Call &call, CmId &id, uint8_t tos, sockaddr *source,
                         sockaddr *destination, int timeout_ms) {
    return (tos == 0 || id.set_tos(call, tos)) &&
           id.resolve_addr(call, source, destination, timeout_ms);
}

} // namespace

std::unique_ptr<rpma_conn_req> rpma_conn_req::outgoing(Call &call, rpma_peer &peer,
                                                       const char *addr, const char *port,
                                                       ConnSettings &&cfg) {
    if (!check_cfg(call, peer, cfg))
        return nullptr;
    AddressList addresses =
        resolve_name(call, addr, port, Side::REMOTE, cfg.source.sin6_family);
    if (!addresses)
        return nullptr;
    return try_each_route(
        call, addresses, cfg.source, addr, port,
        [&](sockaddr *source, sockaddr *destination) -> std::unique_ptr<rpma_conn_req> {
            CmId id = CmId::create(call, nullptr, CLIENT);
            if (!id || !resolve_addr(call, id, cfg.tos, source, destination, cfg.timeout_ms) ||
                !id.resolve_route(call, cfg.timeout_ms))
                return nullptr;
            auto req = make<rpma_conn_req>(call, peer, std::move(id));
            return req && req->set_up(call, cfg) ? std::move(req) : nullptr;
        });
}

std::unique_ptr<rpma_conn_req> rpma_conn_req::start(Call &call, rpma_peer &peer,
                                                    const char *addr, const char *port,
                                                    ConnSettings &&cfg) {
    AddressList addresses =
        resolve_name(call, addr, port, Side::REMOTE, cfg.source.sin6_family);
    if (!addresses)
        return nullptr;
    auto req = make<rpma_conn_req>(call, peer, CmId());
    return req && req->start_resolution(call, std::move(addresses), cfg) ? std::move(req)
                                                                         : nullptr;
}

std::unique_ptr<rpma_conn_req>
rpma_conn_req::incoming(Call &call, rpma_peer &peer, CmEvent &&event, const ConnSettings *cfg) {
    CmId id = CmId::incoming(event->id);
    // Check cfg only once the request event is taken: an event left in the channel would keep
    // the descriptor of the endpoint readable.
    if (cfg != nullptr && !check_cfg(call, peer, *cfg))
        return nullptr;
    auto req = make<rpma_conn_req>(call, peer, std::move(id));
    if (!req || (cfg != nullptr && !req->set_up(call, *cfg)))
        return nullptr;
    const rdma_conn_param &param = event->param.conn;
    if (!req->copy_private_data(param)) {
        RPMA_FAIL(call, RPMA_E_NOMEM, 0, "out of memory: %u bytes of private data",
                  param.private_data_len);
        return nullptr;
    }
    event.release(call);
    // From here on the reader of the endpoint receives no event of this connection.
    const bool nonblocking = cfg == nullptr;
    if (call.has_failed() || !req->use_own_channel(call, nonblocking))
        return nullptr;
    probe::conn_request(req.get(), rdma_get_peer_addr(req->id().get()),
                        static_cast<int>(req->private_data().len));
    return req;
}

bool rpma_conn::start_resolution(Call &call, AddressList &&addresses, const ConnSettings &cfg) {
    resolution_ = make<Resolution>(call, std::move(addresses), cfg);
    return resolution_ && use_own_channel(call, true) && try_next_address(call);
}

// Starts resolving the next usable address. Returns false if none is left (RPMA_E_PROVIDER):
// the failure of the last one counts.
bool rpma_conn::try_next_address(Call &call) {
    Resolution &resolution = *resolution_;
    while (resolution.next_address != nullptr) {
        const addrinfo &address = *resolution.next_address;
        resolution.next_address = address.ai_next;
        call.begin_attempt(resolution.next_address == nullptr);
        CmId created = CmId::create(call, events_.get(), CLIENT);
        if (!created)
            continue;
        // Destroys the previous CM ID, which may hold the source port.
        id_ = std::move(created);
        state_ = State::RESOLVING_ADDRESS;
        if (resolve_addr(call, id_, resolution.tos,
                         source_for(resolution.source, address.ai_family), address.ai_addr,
                         resolution.timeout_ms))
            return true;
    }
    state_ = State::FAILED;
    receive_limit = 0;
    return false;
}

// The device of an address is known once the address is resolved.
bool rpma_conn::check_device(Call &call) const {
    const ibv_context *actual = id_->verbs, *expected = peer.pd().context;
    if (actual != expected)
        RPMA_FAIL(call, RPMA_E_PROVIDER, 0,
                  "the route to %s uses %s, the peer is on %s: use a peer of the same device",
                  address_text(rdma_get_peer_addr(id_.get())).chars,
                  device_text(actual, *expected).chars, ibv_get_device_name(expected->device));
    return actual == expected;
}

// Advances the request by the step that an event completes. Returns false on failure:
// RPMA_E_PROVIDER.
bool rpma_conn::advance_resolution(Call &call, CmEvent &&event) {
    const rdma_cm_event_type type = event->event;
    const int status = event->status;
    event.release(call);
    if (call.has_failed())
        return false;
    Resolution &resolution = *resolution_;
    const int error = status < 0 ? -status : status;
    switch (type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        state_ = State::RESOLVING_ROUTE;
        return check_device(call) && id_.resolve_route(call, resolution.timeout_ms);
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        state_ = State::READY;
        resolution.next_address = nullptr;
        return true;
    case RDMA_CM_EVENT_ADDR_ERROR:
        id_.report_addr_failure(call, error,
                                source_for(resolution.source, resolution.source.sin6_family),
                                rdma_get_peer_addr(id_.get()), resolution.timeout_ms);
        return false;
    case RDMA_CM_EVENT_ROUTE_ERROR:
        id_.report_route_failure(call, error, resolution.timeout_ms);
        return false;
    case RDMA_CM_EVENT_ADDR_CHANGE:
        log_addr_change(call);
        return true;
    default:
        RPMA_FAIL(call, RPMA_E_PROVIDER, 0, "%s: the request cannot proceed%s",
                  rdma_event_str(type), status_text(type, status, id_.get(), false).chars);
        return false;
    }
}

void rpma_conn::resolve(Call &call) {
    // An incoming request has nothing to resolve, and Linux drops all its events until it is
    // accepted.
    if (!resolution_)
        return;
    while (CmEvent event =
               rpma::next_event(call, *events_.get(), is_ready() ? 0 : RPMA_E_AGAIN)) {
        // Only the last address fails the request.
        call.begin_attempt(resolution_->next_address == nullptr);
        const bool can_continue =
            advance_resolution(call, std::move(event)) || try_next_address(call);
        call.end_attempts();
        if (!can_continue)
            return;
    }
}

void rpma_conn_req::reject(Call &call, const rpma_conn_private_data *pdata) {
    id().reject(call, pdata != nullptr ? pdata->ptr : nullptr,
                pdata != nullptr ? pdata->len : 0);
    release(call);
}
