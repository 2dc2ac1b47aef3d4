// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// session.hh -- the client's side of a check

#pragma once

#include "helper.hh"
#include "wire.hh"

#include <functional>

class Session {
  public:
    Session(const Options &options, Helper &helper);

    // Sends a command to the server, and waits for its result.
    Json ask(const Json &command);
    // Both halves of ask().
    void start(const Json &command);
    Json finish();
    // Returns the number of a new connection.
    unsigned reserve() { return ++last_number_; }
    // Begins a connection: the server takes only the request with this private data.
    std::string start_connection(const Json &of_server = Json::object());
    // Connects with settings of this side; of_server: settings of the other side. Throws Late
    // if there is no connection. at_once is called when this side has read its event.
    std::unique_ptr<Connection> open(const Json &own = Json::object(),
                                     const Json &of_server = Json::object(),
                                     const std::function<void(Connection &)> &at_once = {});
    // Ends a connection of both sides.
    void close(Connection &connection);
    bool is_iwarp() const;
    // The memory of the server, which it shows after a connection.
    std::string peek(size_t offset, size_t size);
    void poke(size_t offset, const std::string &text);

    const Options &options;
    Helper &helper;
    rpma::peer peer;
    Channel control;
    Json server;         // the description of the server's device
    std::string version; // of the server
    std::string address; // of this side

  private:
    bool is_pending_ = false;
    unsigned last_number_ = 0; // of a connection
};
