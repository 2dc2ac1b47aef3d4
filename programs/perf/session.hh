// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// session.hh -- a client and its server: the wait for messages, events and workers

#ifndef RPMA_PERF_SESSION_HH
#define RPMA_PERF_SESSION_HH 1

#include "control.hh"
#include "crew.hh"

enum class News { none, message, request, worker, stop };

struct Session {
    // Opens the device of an address of this machine, or that leads to a remote address.
    Session(const std::string &address, rpma_util_ibv_context_type type);

    // Waits for the first news, or until the time is over. Throws a Failure when the other side
    // is lost.
    News wait(int milliseconds);

    ibv_context *context;
    rpma::peer peer;
    std::string device;
    std::optional<rpma::ep> ep; // on the server only
    std::optional<Control> control;
    std::string in;             // the last message received
    std::unique_ptr<Crew> crew; // of the load in preparation or in progress
    bool watches_lanes = false; // the end of a connection of the load ends the session

  private:
    std::vector<pollfd> list() const;
    News look(const std::vector<pollfd> &fds);
};

#endif
