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

// Checks, without network access, that a connection of peer can be created from cfg.
bool check_cfg(Call &call, const rpma_peer &peer, const ConnSettings &cfg) {
    return check_queues(call, peer, cfg) &&
           (cfg.flush_mode != RPMA_FLUSH_MODE_NATIVE || peer.check_native_flush(call));
}

// Starts resolving an address. An ID without a channel has resolved it on return.
bool resolve_addr(Call &call, CmId &id, uint8_t tos, sockaddr *source, sockaddr *destination,
                  int timeout_ms) {
    return (tos == 0 || id.set_tos(call, tos)) &&
           id.resolve_addr(call, source, destination, timeout_ms);
}

} // namespace

std::unique_ptr<rpma_conn_req> rpma_conn_req::create(Call &call, rpma_peer &peer, CmId &&id) {
    auto conn = make<rpma_conn>(call, std::move(id));
    return conn ? make<rpma_conn_req>(call, peer, std::move(conn)) : nullptr;
}

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
            CmId id = CmId::create(call, nullptr);
            if (!id || !resolve_addr(call, id, cfg.tos, source, destination, cfg.timeout_ms) ||
                !id.resolve_route(call, cfg.timeout_ms))
                return nullptr;
            auto req = create(call, peer, std::move(id));
            return req && req->set_up_conn(call, cfg) ? std::move(req) : nullptr;
        });
}

std::unique_ptr<rpma_conn_req> rpma_conn_req::start(Call &call, rpma_peer &peer,
                                                    const char *addr, const char *port,
                                                    ConnSettings &&cfg) {
    AddressList addresses =
        resolve_name(call, addr, port, Side::REMOTE, cfg.source.sin6_family);
    if (!addresses)
        return nullptr;
    auto req = create(call, peer, {});
    if (!req || !req->conn_->use_own_channel(call, true))
        return nullptr;
    req->next_address_ = addresses.get();
    req->addresses_ = std::move(addresses);
    req->source_ = cfg.source;
    req->tos_ = cfg.tos;
    req->timeout_ms_ = cfg.timeout_ms;
    req->is_asynchronous_ = true;
    return req->try_next_address(call) ? std::move(req) : nullptr;
}

std::unique_ptr<rpma_conn_req>
rpma_conn_req::incoming(Call &call, rpma_peer &peer, CmEvent &&event, const ConnSettings *cfg) {
    CmId id = CmId::incoming(event->id);
    // Check cfg only once the request event is taken: an event left in the channel would keep
    // the descriptor of the endpoint readable.
    if (cfg != nullptr && !check_cfg(call, peer, *cfg))
        return nullptr;
    auto req = create(call, peer, std::move(id));
    if (!req || (cfg != nullptr && !req->set_up_conn(call, *cfg)))
        return nullptr;
    const rdma_conn_param &param = event->param.conn;
    if (!req->conn_->copy_private_data(param)) {
        RPMA_FAIL(call, RPMA_E_NOMEM, 0, "out of memory: %u bytes of private data",
                  param.private_data_len);
        return nullptr;
    }
    event.release(call);
    // From here on the reader of the endpoint receives no event of this connection.
    req->is_incoming_ = true;
    req->is_asynchronous_ = cfg == nullptr;
    if (call.has_failed() || !req->conn_->use_own_channel(call, req->is_asynchronous_))
        return nullptr;
    probe::conn_request(req.get(), rdma_get_peer_addr(req->conn_->id().get()),
                        static_cast<int>(req->conn().private_data().len));
    return req;
}

// Starts resolving the next usable address. Returns false if none is left (RPMA_E_PROVIDER):
// the failure of the last one counts.
bool rpma_conn_req::try_next_address(Call &call) {
    while (next_address_ != nullptr) {
        const addrinfo &address = *next_address_;
        next_address_ = address.ai_next;
        call.begin_attempt(next_address_ == nullptr);
        CmId id = CmId::create(call, conn_->events());
        if (!id)
            continue;
        // Destroys the previous CM ID, which may hold the source port.
        conn_->id() = std::move(id);
        step_ = Step::ADDRESS;
        if (resolve_addr(call, conn_->id(), tos_, source_for(source_, address.ai_family),
                         address.ai_addr, timeout_ms_))
            return true;
    }
    step_ = Step::FAILED;
    return false;
}

// The device of an address is known once the address is resolved.
bool rpma_conn_req::check_device(Call &call) const {
    const ibv_context *actual = conn_->id()->verbs, *expected = peer_.pd().context;
    if (actual != expected)
        RPMA_FAIL(call, RPMA_E_PROVIDER, 0,
                  "the route to %s uses %s, the peer is on %s: use a peer of the same device",
                  address_text(rdma_get_peer_addr(conn_->id().get())).chars,
                  device_text(actual, *expected).chars, ibv_get_device_name(expected->device));
    return actual == expected;
}

// Advances the request by the step that an event completes. Returns false on failure:
// RPMA_E_PROVIDER.
bool rpma_conn_req::advance(Call &call, CmEvent &&event) {
    const rdma_cm_event copy = *event.get(); // for the log, after the acknowledgement
    event.release(call);
    if (call.has_failed())
        return false;
    CmId &id = conn_->id();
    const int error = copy.status < 0 ? -copy.status : copy.status;
    switch (copy.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        step_ = Step::ROUTE;
        return check_device(call) && id.resolve_route(call, timeout_ms_);
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        step_ = Step::READY;
        next_address_ = nullptr;
        return true;
    case RDMA_CM_EVENT_ADDR_ERROR:
        id.report_addr_failure(call, error, source_for(source_, source_.sin6_family),
                               rdma_get_peer_addr(id.get()), timeout_ms_);
        return false;
    case RDMA_CM_EVENT_ROUTE_ERROR:
        id.report_route_failure(call, error, timeout_ms_);
        return false;
    case RDMA_CM_EVENT_ADDR_CHANGE:
        log_addr_change(call);
        return true;
    default:
        RPMA_FAIL(call, RPMA_E_PROVIDER, 0, "%s: the request cannot proceed%s",
                  rdma_event_str(copy.event), status_text(copy, id->verbs, false).chars);
        return false;
    }
}

void rpma_conn_req::resolve(Call &call) {
    // Linux drops all events of an incoming request until it is accepted.
    if (!is_asynchronous_ || is_incoming_)
        return;
    while (CmEvent event = next_event(call, *conn_->events(), is_ready() ? 0 : RPMA_E_AGAIN)) {
        call.begin_attempt(next_address_ == nullptr); // only the last address fails the request
        const bool can_continue = advance(call, std::move(event)) || try_next_address(call);
        call.end_attempts();
        if (!can_continue)
            return;
    }
}

bool rpma_conn_req::set_up_conn(Call &call, const ConnSettings &cfg) {
    retry_count_ = cfg.retry_count;
    rnr_retry_count_ = cfg.rnr_retry_count;
    if (!conn_->set_up(call, peer_, cfg))
        return false;
    step_ = Step::SET_UP;
    return true;
}

void rpma_conn_req::set_up(Call &call, const ConnSettings &cfg) {
    if (check_cfg(call, peer_, cfg))
        set_up_conn(call, cfg);
}

// Requests the largest values that the device and the other side support.
rdma_conn_param rpma_conn_req::parameters(const rpma_conn_private_data *pdata) const {
    rdma_conn_param param = {};
    if (pdata != nullptr) {
        param.private_data = pdata->ptr;
        param.private_data_len = pdata->len;
    }
    param.responder_resources = RDMA_MAX_RESP_RES;
    param.initiator_depth = RDMA_MAX_INIT_DEPTH;
    param.flow_control = 1;
    param.retry_count = retry_count_;
    param.rnr_retry_count = rnr_retry_count_;
    return param;
}

std::unique_ptr<rpma_conn> rpma_conn_req::connect(Call &call,
                                                  const rpma_conn_private_data *pdata) {
    if ((conn_->events() == nullptr && !conn_->use_own_channel(call, false)) ||
        !conn_->prepare_flushes(call, peer_))
        return nullptr;
    // Nothing may fail after this step: the connection is established for the other side.
    rdma_conn_param param = parameters(pdata);
    const bool is_started =
        is_incoming_ ? conn_->accept(call, param) : conn_->connect(call, param);
    if (is_started)
        probe::conn_start(conn_.get(), conn_->qp->qp_num, rdma_get_peer_addr(conn_->id().get()),
                          is_incoming_);
    return is_started ? std::move(conn_) : nullptr;
}

void rpma_conn_req::reject(Call &call, const rpma_conn_private_data *pdata) {
    conn_->id().reject(call, pdata != nullptr ? pdata->ptr : nullptr,
                       pdata != nullptr ? pdata->len : 0);
    release(call);
}
