// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_req.cc -- the way from an address, or from a request event, to a connection

#include "core/conn_req.hh"

#include "core/conn.hh"
#include "core/peer.hh"
#include "verbs/address.hh"

namespace {

// Everything the device and the other side agree to, and patience with both.
rdma_conn_param parameters(const rpma_conn_private_data *pdata) {
    rdma_conn_param param = {};
    if (pdata != nullptr) {
        param.private_data = pdata->ptr;
        param.private_data_len = pdata->len;
    }
    param.responder_resources = RDMA_MAX_RESP_RES;
    param.initiator_depth = RDMA_MAX_INIT_DEPTH;
    param.flow_control = 1;
    param.retry_count = 7;
    param.rnr_retry_count = 7;
    return param;
}

rpma::Result<rpma::verbs::CmId> resolve(sockaddr *source, sockaddr *destination,
                                        int timeout_ms) {
    auto id = rpma::verbs::CmId::create(nullptr);
    if (!id)
        return id;
    if (rdma_resolve_addr(id->get(), source, destination, timeout_ms) != 0)
        return rpma::verbs::failed("rdma_resolve_addr()");
    if (rdma_resolve_route(id->get(), timeout_ms) != 0)
        return rpma::verbs::failed("rdma_resolve_route()");
    return id;
}

} // namespace

rpma::Result<std::unique_ptr<rpma_conn_req>> rpma_conn_req::outgoing(rpma_peer &peer,
                                                                     const char *addr,
                                                                     const char *port,
                                                                     const rpma_conn_cfg &cfg) {
    auto names = rpma::verbs::resolve_name(addr, port, rpma::verbs::Side::REMOTE);
    if (!names)
        return rpma::fail(names.error());

    using Attempt = rpma::Result<rpma::Transport>;
    auto transport =
        try_each_route(*names, [&](sockaddr *source, sockaddr *destination) -> Attempt {
            auto id = resolve(source, destination, cfg.timeout_ms);
            if (!id)
                return rpma::fail(id.error());
            return rpma::Transport::create(peer, std::move(*id), cfg);
        });
    if (!transport)
        return rpma::fail(transport.error());
    return rpma::make<rpma_conn_req>(peer, std::move(*transport));
}

rpma::Result<std::unique_ptr<rpma_conn_req>>
rpma_conn_req::incoming(rpma_peer &peer, rpma::verbs::CmEvent &&event,
                        const rpma_conn_cfg &cfg) {
    auto id = rpma::verbs::CmId::incoming(event->id);
    // Refused only now: a request that stayed would keep the descriptor readable for ever.
    if (rpma::has_channel_conflict(cfg))
        return rpma::fail(rpma::CHANNEL_CONFLICT);
    auto transport = rpma::Transport::create(peer, std::move(id), cfg);
    if (!transport)
        return rpma::fail(transport.error());

    const rdma_conn_param &param = event->param.conn;
    auto received = rpma::PrivateData::copy(param.private_data, param.private_data_len);
    if (!received)
        return rpma::fail(received.error());
    transport->received = std::move(*received);

    auto request = rpma::make<rpma_conn_req>(peer, std::move(*transport));
    if (!request)
        return request;
    rpma::Status status = event.close();
    // From here on no event of this connection may reach the reader of the endpoint.
    if (status)
        status = (*request)->own_event_channel();
    if (!status)
        return rpma::fail(status.error());
    return request;
}

rpma::Status rpma_conn_req::own_event_channel() {
    auto channel = rpma::verbs::create_event_channel();
    if (!channel)
        return rpma::fail(channel.error());
    rpma::Status status = transport_.id.migrate(*channel);
    if (status)
        transport_.events = std::move(*channel);
    return status;
}

rpma::Result<std::unique_ptr<rpma_conn>>
rpma_conn_req::connect(const rpma_conn_private_data *pdata) {
    if (!transport_.events) {
        rpma::Status status = own_event_channel();
        if (!status)
            return rpma::fail(status.error());
    }
    const bool is_incoming = transport_.id.is_incoming();
    auto conn = rpma_conn::create(peer_, std::move(transport_));
    if (!conn)
        return conn;

    // Nothing may fail behind this step: the other side takes the connection for real.
    rdma_conn_param param = parameters(pdata);
    rpma::Status status = is_incoming ? (*conn)->accept(param) : (*conn)->connect(param);
    if (!status)
        return rpma::fail(status.error());
    return conn;
}
