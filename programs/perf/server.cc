// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.cc -- serves many clients in one thread without blocking on any

#include "client_session.hh"
#include "sides.hh"

namespace {

constexpr size_t CLIENTS_MAX = 1024;
constexpr int MESSAGES_MS = 1, TICK_MS = 500, ALONE_MS = 60000;

class Listener {
  public:
    explicit Listener(const Options &wanted);
    int serve();

  private:
    void take_request();
    void greet(rpma::conn_req &&request);
    template <class Step> void attend(ClientSession &client, Step step);
    void tick();
    int patience() const;

    const Options &options;
    Server server;
    rpma::ep ep;
    Epoll epoll; // the endpoint (number 0) and the sessions (by client address)
    uint64_t ticked = 0;
    bool is_fine = true, is_over = false; // is_over: the only client has ended
};

Listener::Listener(const Options &wanted)
    : options(wanted), server(options),
      ep(attempt(
          fmt::format("cannot listen on {} port {}", shown(options.address), options.port),
          [&] {
              return rpma::ep(server.device.peer, options.address.c_str(),
                              options.port.c_str());
          })) {
    make_nonblocking(ep.get_fd());
    epoll.add(ep.get_fd(), 0);
    fmt::print("listening on {} port {}: device {}, memory {}{}{}\n", shown(options.address),
               options.port, server.device.name, server.self.memory,
               options.memory.empty() ? "" : " that any client may overwrite",
               options.direct_write ? ", direct write stated" : "");
    check_output();
}

// Runs a step of a client, and drops the client if it fails.
template <class Step> void Listener::attend(ClientSession &client, Step step) {
    const bool is_foreign = client.protocol != PROTOCOL;
    try {
        step();
        return;
    } catch (const std::exception &why) {
        is_fine = !is_foreign && client.is_idle();
        if (is_foreign)
            complain(fmt::format("a client uses version {} of the protocol, this server "
                                 "version {}",
                                 client.protocol, PROTOCOL));
        else if (!is_fine)
            complain(why.what());
    }
    server.clients.remove_if([&](const ClientSession &one) { return &one == &client; });
    is_over = options.once;
}

// A new client, or another connection of one. Allocates nothing for other peers.
void Listener::greet(rpma::conn_req &&request) {
    const Greeting greeting = greeting_of(request.get_private_data());
    if (!greeting.is_ours)
        fail("a peer that is not rpma-perf connected");
    if (greeting.kind != "control") {
        for (ClientSession &client : server.clients)
            if (greeting.kind == "data" && client.session_number == greeting.session)
                return client.take_connection(std::move(request), greeting);
        fail("a connection of an unknown client");
    }
    if (server.clients.size() >= (options.once ? 1 : CLIENTS_MAX)) {
        const std::string text = greeting_text("full", 0, 0);
        return std::move(request).reject(
            std::as_bytes(std::span(text.c_str(), text.size() + 1)));
    }
    ClientSession &client = server.clients.emplace_back(server, std::move(request), greeting);
    epoll.add(client.session.epoll.fd, reinterpret_cast<uintptr_t>(&client));
}

void Listener::take_request() {
    try {
        auto request =
            attempt("cannot accept a connection", [this] { return ep.next_incoming(); });
        if (request)
            greet(std::move(*request));
    } catch (const std::exception &why) {
        complain(why.what());
    }
}

void Listener::tick() {
    ticked = now_ns();
    for (auto next = server.clients.begin(); next != server.clients.end();) {
        ClientSession &client = *next++;
        attend(client, [&] { client.tick(); });
    }
}

// How long until the next tick.
int Listener::patience() const {
    for (const ClientSession &client : server.clients)
        if (client.awaits_messages())
            return MESSAGES_MS;
    return server.clients.empty() ? ALONE_MS : TICK_MS;
}

int Listener::serve() {
    while (!is_stopping() && !is_over) {
        std::array<epoll_event, 64> room;
        for (const epoll_event &event : wait_for(epoll, room, patience())) {
            if (event.data.u64 == 0) {
                take_request();
                continue;
            }
            ClientSession &client = *reinterpret_cast<ClientSession *>(event.data.u64);
            attend(client, [&] { client.go_on(); });
        }
        if (is_past(ticked, patience()))
            tick();
    }
    return is_fine || !options.once ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int run_server(const Options &options) {
    return Listener(options).serve();
}
