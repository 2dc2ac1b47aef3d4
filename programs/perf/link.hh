// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// link.hh -- a connection: how it is established, and how its end is noticed

#ifndef RPMA_PERF_LINK_HH
#define RPMA_PERF_LINK_HH 1

#include "librpma.hpp"

#include <string>

// With limits for retries, so that devices that support them notice a lost peer.
rpma::conn_cfg link_cfg();

void make_nonblocking(int fd);

struct Link {
    rpma::conn conn;
    int fd = -1; // for its events
    bool has_ended = false;

    // Connects or accepts and waits until the connection is established. kind, session and
    // number go to the other side as private data.
    void open(rpma::conn_req &&request, const char *kind, uint64_t session, uint64_t number);

    // Takes the pending events. Returns false if the connection has ended.
    bool is_up();
};

// The private data of the other side; it may speak another protocol, or be no rpma-perf at all.
struct Greeting {
    bool is_ours = false; // the other side is an rpma-perf
    unsigned protocol = 0;
    std::string kind;
    uint64_t session = 0, number = 0;
};
Greeting greeting_of(std::span<const std::byte> data);

#endif
