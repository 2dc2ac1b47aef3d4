// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// listener.cc -- serves many clients in one thread, without blocking

#include "server_session.hh"

#include "nonblocking.hh"

#include <algorithm>

namespace {

constexpr size_t CLIENTS_MAX = 1024;
constexpr int MESSAGES_MS = 1, NO_CLIENTS_MS = 60000;

class Listener {
  public:
    explicit Listener(const Options &parsed);
    int serve();

  private:
    void accept_request();
    void dispatch_request(rpma::conn_req &&request);
    template <class Step> void run_step(ServerSession &client, Step step);
    void advance(ServerSession &client);
    void check_timeouts();
    int tick_interval() const;
    bool has_more() const;

    const Options &options_;
    Server server_;
    rpma::ep ep_;
    Epoll epoll_; // the endpoint (number 0) and the sessions (by client address)
    uint64_t last_tick_ = 0;
    bool has_succeeded_ = true, is_finished_ = false; // is_finished: the only client has ended
};

Listener::Listener(const Options &parsed)
    : options_(parsed), server_(options_),
      ep_(attempt(
          fmt::format("cannot listen on {} port {}", escaped(options_.address), options_.port),
          [&] {
              return rpma::ep(server_.device.peer, options_.address.c_str(),
                              options_.port.c_str());
          })) {
    make_nonblocking(ep_.get_fd());
    epoll_.add(ep_.get_fd(), 0);
    fmt::print("listening on {} port {}: device {}, memory {}{}{}\n", escaped(options_.address),
               options_.port, server_.device.name, server_.self.memory,
               options_.memory.empty() ? "" : " that any client may overwrite",
               options_.direct_write ? ", direct write stated" : "");
    (void)fflush(stdout); // a server without an output serves; serve() checks it
}

// Runs a step of a client, and disconnects the client if it fails.
template <class Step> void Listener::run_step(ServerSession &client, Step step) {
    const bool is_other_version = client.protocol != PROTOCOL;
    try {
        step();
        return;
    } catch (const std::exception &why) {
        has_succeeded_ = !is_other_version && client.is_idle();
        if (is_other_version)
            print_error(fmt::format("a client uses version {} of the protocol, this server "
                                    "version {}",
                                    client.protocol, PROTOCOL));
        else if (!has_succeeded_)
            print_error(why.what());
    }
    server_.clients.remove_if([&](const ServerSession &one) { return &one == &client; });
    is_finished_ = options_.once;
}

// Adds a client, or a connection of an existing client. Allocates nothing for other peers.
void Listener::dispatch_request(rpma::conn_req &&request) {
    const Greeting greeting = greeting_of(request.get_private_data());
    if (!greeting.is_ours)
        fail("a peer that is not rpma-perf connected");
    if (greeting.kind != "control") {
        for (ServerSession &client : server_.clients)
            if (greeting.kind == "data" && client.session_number == greeting.session)
                return client.take_connection(std::move(request), greeting);
        fail("a connection of an unknown client");
    }
    if (server_.clients.size() >= (options_.once ? 1 : CLIENTS_MAX)) {
        const std::string text = greeting_text("full", 0, 0);
        return std::move(request).reject(
            std::as_bytes(std::span(text.c_str(), text.size() + 1)));
    }
    ServerSession &client = server_.clients.emplace_back(server_, std::move(request), greeting);
    epoll_.add(client.loop.epoll.fd, reinterpret_cast<uintptr_t>(&client));
}

void Listener::accept_request() {
    try {
        auto request =
            attempt("cannot accept a connection", [this] { return ep_.next_incoming(); });
        if (request)
            dispatch_request(std::move(*request));
    } catch (const std::exception &why) {
        print_error(why.what());
    }
}

void Listener::advance(ServerSession &client) {
    run_step(client, [&] { client.has_more = client.advance(); });
}

void Listener::check_timeouts() {
    last_tick_ = now_ns();
    for (auto next = server_.clients.begin(); next != server_.clients.end();) {
        ServerSession &client = *next++;
        run_step(client, [&] { client.check_timeouts(); });
    }
}

// Milliseconds until the next call of check_timeouts().
int Listener::tick_interval() const {
    for (const ServerSession &client : server_.clients)
        if (client.awaits_messages())
            return MESSAGES_MS;
    return server_.clients.empty() ? NO_CLIENTS_MS : TICK_MS;
}

bool Listener::has_more() const {
    return std::ranges::any_of(server_.clients, &ServerSession::has_more);
}

int Listener::serve() {
    while (!is_stopping() && !is_finished_) {
        std::array<epoll_event, 64> events;
        for (const epoll_event &event :
             wait_for(epoll_, events, has_more() ? 0 : tick_interval())) {
            if (event.data.u64 == 0) {
                accept_request();
                continue;
            }
            ServerSession &client = *reinterpret_cast<ServerSession *>(event.data.u64);
            advance(client);
        }
        for (auto next = server_.clients.begin(); next != server_.clients.end();)
            if (ServerSession &client = *next++; client.has_more)
                advance(client);
        if (is_past(last_tick_, tick_interval()))
            check_timeouts();
    }
    check_output();
    return has_succeeded_ || !options_.once ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace

int run_server(const Options &options) {
    return Listener(options).serve();
}
