// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// session.cc -- the client's side of a check

#include "session.hh"

#include "device_description.hh"

Session::Session(const Options &given, Helper &forks)
    : options(given), helper(forks), peer(peer_of(given.address, RPMA_UTIL_IBV_CONTEXT_REMOTE)),
      control(peer, given.address, given.port),
      address(address_of(control.conn.get_local_addr())) {
    // siw loses the event of the accept if a message follows at once (rpma_soft_devices(7)).
    // No condition shows this side that the accept has ended: the server must not send before
    // the first message of the client (RFC 5044).
    for (const Clock pause; is_iwarp() && pause.wait(0.2);)
        ;
    server = ask({{"do", "hello"}}).at("device");
}

void Session::start(const Json &command) {
    if (is_pending_) // of a question that failed
        (void)finish();
    control.send(command);
    is_pending_ = true;
}

Json Session::finish() {
    const Json found = control.receive(30, [] {});
    is_pending_ = false;
    return found;
}

Json Session::ask(const Json &command) {
    start(command);
    return finish();
}

std::string Session::start_connection(const Json &of_server) {
    const unsigned number = reserve();
    start({{"do", "accept"}, {"connection", number}, {"settings", of_server}});
    return greeting("data", number);
}

std::unique_ptr<Connection> Session::open(const Json &own, const Json &of_server,
                                          const std::function<void(Connection &)> &at_once) {
    auto made = std::make_unique<Connection>(peer, own);
    const std::string data = start_connection(of_server);
    rpma::conn_req request =
        rpma::conn_req::start(peer, options.address, options.port, made->cfg);
    for (const Clock clock; !request.resolve();)
        if (!clock.wait(5))
            throw Late("no route");
    made->establish(std::move(request), as_data(data));
    const std::string event = made->event();
    if (at_once && event == event_name(RPMA_CONN_ESTABLISHED))
        at_once(*made);
    const Json found = finish();
    if (event != event_name(RPMA_CONN_ESTABLISHED) || !found.contains("region"))
        throw Late(found.value("error", "no connection: " + event));
    made->number = found.at("number");
    const auto packed = from_hex(found.at("region"));
    rpma::received received = rpma::unpack(packed);
    made->remote = std::move(received.regions.at(0));
    made->conn.apply_remote_peer_cfg(received.pcfg.value());
    return made;
}

void Session::close(Connection &connection) {
    connection.conn.disconnect();
    (void)ask({{"do", "close"}, {"number", connection.number}});
}

std::string Session::peek(size_t offset, size_t size) {
    const auto bytes =
        from_hex(ask({{"do", "peek"}, {"offset", offset}, {"size", size}}).at("bytes"));
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

void Session::poke(size_t offset, const std::string &text) {
    (void)ask({{"do", "poke"}, {"offset", offset}, {"bytes", to_hex(as_data(text))}});
}

bool Session::is_iwarp() const {
    return peer.get_ibv_pd()->context->device->transport_type == IBV_TRANSPORT_IWARP;
}
