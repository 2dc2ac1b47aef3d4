// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// timing.cc -- retries, lost peers, and a port that goes down: results that need time

#include "questions.hh"

#include <cstdio>
#include <cstring>
#include <unistd.h>

namespace {

constexpr double TOO_LATE_S = 20, PORT_DOWN_S = 60;

// Waits for one completion, and compares its time with bounds.
Results timed(Connection &connection, double least, double most) {
    const Clock clock;
    const auto completions = connection.take(1, most);
    const double seconds = clock.seconds();
    if (completions.empty())
        return {{"status", "no completion"}};
    const bool is_success = completions[0].status == IBV_WC_SUCCESS;
    Results found = {{"status", is_success ? "ok" : status_name(completions[0].status)}};
    if (completions[0].status == IBV_WC_RETRY_EXC_ERR ||
        completions[0].status == IBV_WC_RNR_RETRY_EXC_ERR)
        found.emplace_back("time", seconds < least ? "too early" : "within bounds");
    return found;
}

// A side advertises how often the other side retries.
std::unique_ptr<Connection> open_with_rnr(Session &session, unsigned retries, unsigned ms) {
    const Json settings = {{"rnr", retries}, {"rnr_ms", ms}};
    return session.open(settings, settings);
}

// 3 retries after 20 ms and more: at least 60 ms.
Results rnr(Session &session) {
    const auto made = open_with_rnr(session, 3, 20);
    rpma::check(made->conn.send(made->memory.mr, 0, 8, ALWAYS));
    Results found = timed(*made, 0.05, 5);
    session.close(*made);
    return found;
}

// A receive that comes in time. On iWARP a message without a receive ends the connection.
Results rnr_in_time(Session &session) {
    if (session.is_iwarp())
        return {};
    const auto made = open_with_rnr(session, 7, 10);
    rpma::check(made->conn.send(made->memory.mr, 0, 8, ALWAYS));
    const auto early = made->take(1, 0.05);
    (void)session.ask({{"do", "receive"}, {"number", made->number}, {"count", 1}});
    const Json taken = session.ask({{"do", "taken"}, {"number", made->number}, {"count", 1}});
    const auto done = early.empty() ? made->take(1) : early;
    Results found = {{"received", taken.at("received").dump()},
                     {"status", done.empty() ? "no completion" : status_name(done[0].status)}};
    session.close(*made);
    return found;
}

// The queue pair of the other side is in the state ERR.
Results silent(Session &session) {
    const auto made = session.open({{"retry", 1}, {"ack_ms", 60}});
    Connection &c = *made;
    (void)session.ask({{"do", "fail"}, {"number", c.number}});
    const rpma::status posted = c.conn.write(c.remote, 0, c.memory.mr, 0, 8, ALWAYS);
    Results found = posted == rpma::status::ok ? timed(c, 0.05, TOO_LATE_S)
                                               : Results{{"status", code_name(posted)}};
    session.close(c);
    return found;
}

Results killed(Session &session) {
    Connection c(session.peer, {{"receives", 1}, {"retry", 2}, {"ack_ms", 200}});
    const std::string port = session.ask({{"do", "victim"}}).value("port", "0");
    rpma::conn_req request(session.peer, session.options.address, port, c.cfg);
    rpma::check(request.recv(c.memory.mr, 0, 64));
    c.conn = std::move(request).connect();
    const std::string event = c.event();
    Results found = {{"connection", event}};
    if (event != event_name(RPMA_CONN_ESTABLISHED))
        return found;
    auto received = rpma::unpack(c.conn.get_private_data());
    rpma::check(c.conn.write(received.regions.at(0), 0, c.memory.mr, 0, 8, ALWAYS));
    found.emplace_back("write before", c.take(1).size() == 1 ? "ok" : "no completion");
    (void)session.ask({{"do", "victim"}, {"kill", true}});
    found.emplace_back("event", c.event(TOO_LATE_S));
    c.conn.disconnect();
    const auto flushed = c.take(1);
    found.emplace_back("pending receive",
                       flushed.empty() ? "no completion" : status_name(flushed[0].status));
    Connection next(session.peer, {});
    rpma::conn_req late(session.peer, session.options.address, port, next.cfg);
    try {
        next.conn = std::move(late).connect();
        found.emplace_back("connect afterwards", next.event());
    } catch (const rpma::error &) { // iWARP connects in the call
        found.emplace_back("connect afterwards", "refused");
    }
    return found;
}

// The user disconnects the cable, and connects it again.
Results port_down(Session &session) {
    if (!session.options.port_down)
        return {};
    const auto made = session.open({{"retry", 2}, {"ack_ms", 200}});
    Connection &c = *made;
    (void)std::fputs("rpma-check: disconnect the cable of this machine within 60 s\n", stderr);
    std::string status = "no failure";
    for (const Clock clock; status == "no failure" && clock.wait(PORT_DOWN_S);) {
        if (c.conn.write(c.remote, 0, c.memory.mr, 0, 8, ALWAYS) != rpma::status::ok)
            status = "the post fails";
        else if (const auto done = c.take(1, TOO_LATE_S); done.empty())
            status = "no completion";
        else if (done[0].status != IBV_WC_SUCCESS)
            status = status_name(done[0].status);
    }
    (void)std::fputs("rpma-check: connect the cable again\n", stderr);
    return {{"status of a write", status}};
}

} // namespace

const std::vector<Question> &timings() {
    static const std::vector<Question> ALL = {{"no receive", rnr},
                                              {"late receive", rnr_in_time},
                                              {"silent peer", silent},
                                              {"killed peer", killed},
                                              {"port down", port_down}};
    return ALL;
}
