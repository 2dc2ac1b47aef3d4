// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server_session.hh -- the server's session with one client: connections, messages and load

#pragma once

#include "event_loop.hh"
#include "report.hh"

#include <list>

struct ServerSession;

// State shared by all client sessions.
struct Server {
    explicit Server(const Options &options);
    // DRAM used by the loads of all clients; with --memory, not 0 if a load uses that memory.
    uint64_t used() const;

    const Options &options;
    const Mapping memory; // empty: DRAM, allocated for each load
    Device device;
    const Side self;
    std::list<ServerSession> clients;
};

struct ServerSession {
    // Takes the request; its private data is the greeting.
    ServerSession(Server &server, rpma::conn_req &&request, const Greeting &greeting);

    // Handles some pending events, and returns true if more may be pending. Never blocks;
    // throws a Failure when the client is lost.
    bool advance();
    // Handles timeouts.
    void check_timeouts();
    // Returns true if the load ends as soon as its messages have arrived.
    bool awaits_messages() const { return state_ == State::stopping; }
    // Returns true if the client may disconnect without a failure.
    bool is_idle() const;
    // Takes the request if it is a connection of this client's load.
    void take_connection(rpma::conn_req &&request, const Greeting &greeting);

    Server &server;
    EventLoop loop;
    const uint64_t protocol;     // version used by the client
    uint64_t session_number = 0; // number of the load
    bool has_more = false;       // events may be pending, of which epoll reports nothing

  private:
    void on_connection(Connection &connection);
    void advance(Connection &connection);
    void handle(const Json &message);
    void refuse(const std::string &why);
    void on_hello();
    void on_plan(const Json &message);
    void make_generator(const Plan &plan);
    void on_measure();
    void on_begin();
    void begin();
    void on_stop(const std::vector<uint64_t> &done);
    void end_load();

    // Between a plan and its result, the loss of the client is a failure.
    enum class State { idle, prepared, running, measuring, stopping };

    State state_ = State::idle;
    bool is_begin_requested_ = false;
    uint64_t cpu_before_ = 0, measured_from_ = 0;
    std::vector<uint64_t> counts_;    // operations per connection, as reported by the client
    uint64_t counts_received_at_ = 0; // the time of this report
    Json result_;            // result of the load, once the client has reported its counts
    uint64_t last_activity_; // last activity of the client's program, not only of its device
};
