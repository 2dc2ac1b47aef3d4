// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.hh -- a client as the server sees it: its connections, its messages and its load

#ifndef RPMA_PERF_CLIENT_SESSION_HH
#define RPMA_PERF_CLIENT_SESSION_HH 1

#include "report.hh"
#include "session.hh"

#include <list>

struct ClientSession;

// What all clients share.
struct Server {
    explicit Server(const Options &options);
    // DRAM that the loads of all clients have, or whether one of them has the memory of
    // --memory.
    uint64_t used() const;

    const Options &options;
    const Memory memory; // empty: DRAM, allocated for each load
    Device device;
    const Side self;
    std::list<ClientSession> clients;
};

struct ClientSession {
    // Takes a request whose private data are the greeting.
    ClientSession(Server &server, rpma::conn_req &&request, const Greeting &greeting);

    // Handles what has happened. Never waits for the client; throws a Failure when it is lost.
    void go_on();
    // The same for the time that has passed.
    void tick();
    // Whether the load ends as soon as its messages have arrived.
    bool awaits_messages() const { return state == State::stopping; }
    // Whether the client may leave without having failed.
    bool is_idle() const;
    // Takes the request of a connection of this client's load, or leaves it.
    void take_connection(rpma::conn_req &&request, const Greeting &greeting);

    Server &server;
    Session session;
    const uint64_t protocol;     // that the client speaks
    uint64_t session_number = 0; // of the load

  private:
    void on_connection(Connection &connection);
    void go_on(Connection &connection);
    void answer(const Json &message);
    void refuse(const std::string &why);
    void on_hello();
    void on_plan(const Json &message);
    void make_generator(const Plan &plan);
    void on_measure();
    void on_begin();
    void begin();
    void on_stop(const std::vector<uint64_t> &done);
    void end_load();

    // From a plan to its result, the loss of the client is a failure.
    enum class State { idle, prepared, running, measuring, stopping };

    State state = State::idle;
    bool is_asked_to_begin = false;
    uint64_t cpu_before = 0, measured_from = 0;
    std::vector<uint64_t> counts; // what the client says it has done
    uint64_t asked = 0;           // when it said so
    Json result;                  // of the load, from then on
    uint64_t heard; // when the client itself, not only its device, last did anything
};

#endif
