// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm_link.cc -- connects without blocking and detects the end of a connection

#include "cm_link.hh"

#include "failure.hh"
#include "message.hh"

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

std::string greeting_text(const char *kind, uint64_t session, uint64_t number) {
    return fmt::format("rpma-perf {} {} {} {}", PROTOCOL, kind, session, number);
}

void CmLink::start(rpma::peer &peer, const std::string &address, const std::string &port) {
    const rpma::conn_cfg cfg = link_cfg();
    request = attempt(fmt::format("cannot connect to {} port {}", escaped(address), port), [&] {
        return rpma::conn_req::start(peer, address.c_str(), port.c_str(), cfg);
    });
    fd = request.get_event_fd();
}

void CmLink::take(rpma::conn_req &&incoming) {
    request = std::move(incoming);
    fd = request.get_event_fd();
}

void CmLink::connect(const std::string &greeting) {
    conn = attempt("cannot connect", [&] {
        return std::move(request).connect(
            std::as_bytes(std::span(greeting.c_str(), greeting.size() + 1)));
    });
}

[[noreturn]] static void fail_to_connect(const CmLink &link, rpma_conn_event event) {
    switch (event) {
    case RPMA_CONN_REJECTED:
        if (greeting_of(link.conn.get_private_data()).kind == "full")
            fail("the connection is refused: the server has its maximum number of clients");
        fail("the connection is refused: no server listens there, or one that expects "
             "something else");
    case RPMA_CONN_UNREACHABLE:
        fail("the other side does not reply");
    default:
        fail("the other side closed the connection while connecting");
    }
}

CmLink::Step CmLink::advance() {
    if (request.get())
        return attempt("cannot connect", [this] { return request.resolve(); }) ? Step::ready
                                                                               : Step::none;
    while (!has_ended) {
        rpma_conn_event event = RPMA_CONN_UNDEFINED;
        const int ret = rpma_conn_next_event(conn, &event);
        if (ret == RPMA_E_NO_EVENT)
            return Step::none;
        if (ret == RPMA_E_UNKNOWN) // an event that this program ignores
            continue;
        if (ret == 0 && event == RPMA_CONN_ESTABLISHED) {
            is_established = true;
            return Step::established;
        }
        has_ended = true;
        if (!is_established)
            fail_to_connect(*this, ret ? RPMA_CONN_LOST : event);
    }
    return Step::ended;
}

void CmLink::end() {
    (void)rpma_conn_disconnect(conn); // flushes the outstanding work requests
    fail("the other side closed the connection");
}

Greeting greeting_of(std::span<const std::byte> data) {
    Greeting greeting;
    const std::string text(reinterpret_cast<const char *>(data.data()), data.size());
    char kind[16] = "", protocol[11] = "";
    greeting.is_ours = sscanf(text.c_str(), "rpma-perf %10[0-9] %15s %lu %lu", protocol, kind,
                              &greeting.session, &greeting.number) >= 1;
    greeting.protocol = std::strtoull(protocol, nullptr, 10);
    greeting.kind = kind;
    return greeting;
}
