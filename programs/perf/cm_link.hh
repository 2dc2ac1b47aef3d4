// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm_link.hh -- connects without blocking and detects the end of a connection

#pragma once

#include <librpma.hpp>

#include <string>

// Limits the retries, so that devices that support these limits detect a lost peer.
rpma::conn_cfg link_cfg();

// The private data of both sides: the kind, session and number of the connection.
std::string greeting_text(const char *kind, uint64_t session, uint64_t number);

struct CmLink {
    // none: wait for the descriptor; ready: the request can be set up
    enum class Step { none, ready, established, ended };

    rpma::conn_req request; // empty once it is connected
    rpma::conn conn;
    int fd = -1; // descriptor of the request, later of the connection
    bool is_established = false, has_ended = false;

    // Starts connecting.
    void start(rpma::peer &peer, const std::string &address, const std::string &port);
    // Takes an incoming request; the next step is ready.
    void take(rpma::conn_req &&incoming);
    // Connects or accepts the request after its setup and its receives.
    void connect(const std::string &greeting);
    // The next step once the descriptor is readable; never blocks. Throws a Failure if the
    // connection cannot be established.
    Step advance();
    // Called once the connection has ended: flushes its work requests and throws a Failure.
    [[noreturn]] void end();
};

// The peer's private data. The peer may use another protocol or may not be rpma-perf.
struct Greeting {
    bool is_ours = false;  // the peer is rpma-perf
    uint64_t protocol = 0; // 64 bits, because a peer may send more than 32
    std::string kind;
    uint64_t session = 0, number = 0;
};
Greeting greeting_of(std::span<const std::byte> data);
