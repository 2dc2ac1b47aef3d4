// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_req.cc -- the way from an address, or from a request event, to a connection

#include "core/conn_req.hh"

#include "core/conn.hh"
#include "core/peer.hh"
#include "verbs/address.hh"

using namespace rpma;

namespace {

// Whether a connection of peer can be made as cfg says, as far as that is known without asking
// the network.
bool check(Call &call, const rpma_peer &peer, const rpma_conn_cfg &cfg) {
    return check_queues(call, peer, cfg) &&
           (cfg.flush_mode != RPMA_FLUSH_MODE_NATIVE || peer.check_native_flush(call));
}

} // namespace

std::unique_ptr<rpma_conn_req> rpma_conn_req::outgoing(Call &call, rpma_peer &peer,
                                                       const char *addr, const char *port,
                                                       const rpma_conn_cfg &cfg) {
    if (!check(call, peer, cfg))
        return nullptr;
    Names names = resolve_name(call, addr, port, Side::REMOTE);
    if (!names)
        return nullptr;
    const int timeout_ms = cfg.timeout_ms;
    const uint8_t tos = cfg.tos;
    auto conn = try_each_route(
        call, names, addr, port,
        [&](sockaddr *source, sockaddr *destination) -> std::unique_ptr<rpma_conn> {
            CmId id = CmId::create(call, nullptr);
            if (!id || (tos != 0 && !id.set_tos(call, tos)) ||
                !id.resolve_addr(call, source, destination, timeout_ms) ||
                !id.resolve_route(call, timeout_ms))
                return nullptr;
            return rpma_conn::create(call, peer, std::move(id), cfg);
        });
    if (!conn)
        return nullptr;
    return make<rpma_conn_req>(call, peer, std::move(conn), cfg);
}

std::unique_ptr<rpma_conn_req> rpma_conn_req::incoming(Call &call, rpma_peer &peer,
                                                       CmEvent &&event,
                                                       const rpma_conn_cfg &cfg) {
    CmId id = CmId::incoming(event->id);
    // cfg is checked only now that the request was taken: if it stayed, the descriptor of the
    // endpoint would be readable for ever.
    if (!check(call, peer, cfg))
        return nullptr;
    auto conn = rpma_conn::create(call, peer, std::move(id), cfg);
    if (!conn)
        return nullptr;
    const rdma_conn_param &param = event->param.conn;
    if (!conn->keep(param)) {
        RPMA_FAIL(call, RPMA_E_NOMEM, 0, "out of memory: %u bytes of private data",
                  param.private_data_len);
        return nullptr;
    }
    event.release(call);
    // From here on no event of this connection may reach the reader of the endpoint.
    if (call.failed() || !conn->own_events(call))
        return nullptr;
    return make<rpma_conn_req>(call, peer, std::move(conn), cfg);
}

// Asks for the most that the device and the other side agree to.
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
    if ((!conn_->has_events() && !conn_->own_events(call)) ||
        !conn_->prepare_flushes(call, peer_))
        return nullptr;
    // Nothing may fail behind this step: the other side takes the connection for real.
    rdma_conn_param param = parameters(pdata);
    const bool begun =
        conn_->id().is_incoming() ? conn_->accept(call, param) : conn_->connect(call, param);
    return begun ? std::move(conn_) : nullptr;
}
