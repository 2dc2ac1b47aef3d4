// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// event_loop.hh -- one side of a client-server pair: waits for messages, connections and
// workers

#pragma once

#include "control_channel.hh"
#include "load_generator.hh"

constexpr int TICK_MS = 500; // the longest wait while anything is in progress

enum class Event {
    none,
    up,
    message,
    connection,
    worker,
    stop
}; // up: the control connection is established

struct Device {
    // Opens the device of a local address, or the one that reaches a remote address.
    Device(const std::string &address, rpma_util_ibv_context_type type);

    bool has_atomics() const;

    ibv_context *context;
    rpma::peer peer;
    std::string name;
};

struct EventLoop {
    // Numbers of the descriptors in epoll; connection i has the number CONNECTIONS + i.
    enum : uint64_t { CQ, EVENTS, WAKE, CONNECTIONS };

    explicit EventLoop(rpma::peer &peer) : control(peer) {}

    // Waits for an event, at most for this time. Throws a Failure when the other side is lost.
    Event poll(int milliseconds);
    // Does the same, and sends keepalives.
    Event wait(int milliseconds);
    void watch_control(); // called once its link is started or taken
    void watch(const Connection &connection) const;
    void begin(std::unique_ptr<LoadGenerator> made);

    Epoll epoll;
    ControlChannel control;
    std::string in;                           // the last message received
    uint64_t connection = 0;                  // the connection of the last event
    std::unique_ptr<LoadGenerator> generator; // the prepared or running load

  private:
    bool advance();
};
