// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// link.hh -- a connection: how it is made without waiting, and how its end is noticed

#ifndef RPMA_PERF_LINK_HH
#define RPMA_PERF_LINK_HH 1

#include "librpma.hpp"

#include <string>

// With limits for retries, so that devices that support them notice a lost peer.
rpma::conn_cfg link_cfg();

void make_nonblocking(int fd);

// The private data of both sides, which says who connects to what.
std::string greeting_text(const char *kind, uint64_t session, uint64_t number);

struct Link {
    // none: wait for the descriptor; ready: the request can be set up
    enum class Step { none, ready, established, ended };

    rpma::conn_req request; // until it is connected
    rpma::conn conn;
    int fd = -1; // of the request, and then of the connection
    bool is_established = false, has_ended = false;

    // Begins to connect.
    void start(rpma::peer &peer, const std::string &address, const std::string &port);
    // Takes over a request that came in, which is ready.
    void take(rpma::conn_req &&incoming);
    // Connects or accepts the request, which is set up and has its receives.
    void connect(const std::string &greeting);
    // What comes next once the descriptor is readable; never waits. Throws a Failure if the
    // connection does not come up.
    Step go_on();
    // Of a connection that has ended: flushes its work requests and throws a Failure.
    [[noreturn]] void end();
};

// The private data of the other side; it may speak another protocol, or be no rpma-perf at all.
struct Greeting {
    bool is_ours = false;  // the other side is an rpma-perf
    uint64_t protocol = 0; // 32 bits would be enough, but a peer may send more
    std::string kind;
    uint64_t session = 0, number = 0;
};
Greeting greeting_of(std::span<const std::byte> data);

#endif
