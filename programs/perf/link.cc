// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// link.cc -- a connection: how it is established, and how its end is noticed

#include "link.hh"

#include "failure.hh"
#include "message.hh"
#include "waiting.hh"

#include <fcntl.h>

static constexpr int ADDRESS_TIMEOUT_MS = 5000;
// The retries take 4 s on soft-RoCE, at most 28 s elsewhere: rpma_conn_cfg_set_ack_timeout(3).
static constexpr int ACK_TIMEOUT_MS = 500;
static constexpr uint8_t RETRY_COUNT = 6;

rpma::conn_cfg link_cfg() {
    rpma::conn_cfg cfg;
    cfg.set_timeout(ADDRESS_TIMEOUT_MS)
        .set_ack_timeout(ACK_TIMEOUT_MS)
        .set_retry_count(RETRY_COUNT);
    return cfg;
}

void make_nonblocking(int fd) {
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
        fail("fcntl: {}", strerror(errno));
}

// The first event of a connection, or RPMA_CONN_UNDEFINED if none comes in time.
static rpma_conn_event first_event(Link &link) {
    const uint64_t until = now_ns() + uint64_t{PATIENCE_MS} * 1000000;
    while (!is_stopping()) {
        rpma_conn_event event = RPMA_CONN_UNDEFINED;
        const int ret = rpma_conn_next_event(link.conn, &event);
        if (ret == 0)
            return event;
        if (ret != RPMA_E_NO_EVENT && ret != RPMA_E_UNKNOWN)
            return RPMA_CONN_LOST;
        const uint64_t now = now_ns();
        if (now >= until)
            break;
        wait_readable(link.fd, static_cast<int>((until - now) / 1000000) + 1);
    }
    return RPMA_CONN_UNDEFINED;
}

static void await_established(Link &link) {
    switch (first_event(link)) {
    case RPMA_CONN_ESTABLISHED:
        return;
    case RPMA_CONN_REJECTED:
        fail("the connection is refused: nobody listens there, or a server that is busy with "
             "another client");
    case RPMA_CONN_UNDEFINED:
        if (is_stopping())
            fail("interrupted while connecting");
        [[fallthrough]];
    case RPMA_CONN_UNREACHABLE:
        fail("the other side does not answer");
    default:
        fail("the other side closed the connection while it came up");
    }
}

void Link::open(rpma::conn_req &&request, const char *kind, uint64_t session, uint64_t number) {
    const std::string text =
        fmt::format("rpma-perf {} {} {} {}", PROTOCOL, kind, session, number);
    conn = attempt("cannot connect", [&] {
        return std::move(request).connect(
            std::as_bytes(std::span(text.c_str(), text.size() + 1)));
    });
    fd = conn.get_event_fd();
    make_nonblocking(fd);
    await_established(*this);
}

bool Link::is_up() {
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    int ret = 0;
    while (!has_ended && (ret = rpma_conn_next_event(conn, &event)) != RPMA_E_NO_EVENT)
        has_ended = ret != RPMA_E_UNKNOWN && (ret || event != RPMA_CONN_ESTABLISHED);
    return !has_ended;
}

Greeting greeting_of(std::span<const std::byte> data) {
    Greeting greeting;
    const std::string text(reinterpret_cast<const char *>(data.data()), data.size());
    char kind[16] = "";
    greeting.is_ours = sscanf(text.c_str(), "rpma-perf %u %15s %lu %lu", &greeting.protocol,
                              kind, &greeting.session, &greeting.number) >= 1;
    greeting.kind = kind;
    return greeting;
}
