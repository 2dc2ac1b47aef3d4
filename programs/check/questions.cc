// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// questions.cc -- connections, queues and sharing: what a device does between two machines

#include "operation_questions.hh"

#include "../info/info.hh"

#include <algorithm>
#include <cstring>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

std::string yes_or_no(bool is_true) {
    return is_true ? "yes" : "no";
}

std::string outcome(rpma::status posted, Connection &connection, size_t count, double limit) {
    if (posted != rpma::status::ok)
        return code_name(posted);
    const auto completions = connection.take(count, limit);
    for (const ibv_wc &wc : completions)
        if (wc.status != IBV_WC_SUCCESS)
            return status_name(wc.status);
    return completions.size() == count ? "ok" : "no completion";
}

namespace {

// ---- connections -------------------------------------------------------------------------

Results set_up(Session &session) {
    Results found;
    const std::string data = session.start_connection();
    Connection blocking(session.peer, {});
    rpma::conn_req request(session.peer, session.options.address, session.options.port,
                           blocking.cfg);
    blocking.conn = std::move(request).connect(as_data(data));
    found.emplace_back("in one call", blocking.event());
    blocking.number = session.finish().value("number", -1);
    session.close(blocking);
    const auto late = session.open({}, {{"after", 0.2}});
    found.emplace_back("accepted later", event_name(RPMA_CONN_ESTABLISHED));
    session.close(*late);
    {
        Connection deleted(session.peer, {});
        auto started = rpma::conn_req::start(session.peer, session.options.address,
                                             session.options.port, deleted.cfg);
        for (const Clock clock; !started.resolve() && clock.wait(5);)
            ;
        deleted.set_up(started);
    }
    const auto next = session.open();
    found.emplace_back("after a deleted request", event_name(RPMA_CONN_ESTABLISHED));
    session.close(*next);
    return found;
}

// Messages of a side that sends as soon as it may. On iWARP the client sends first, and siw
// loses the event of the accept if a message follows at once (rpma_soft_devices(7)).
Results early_messages(Session &session) {
    Results found;
    if (session.is_iwarp())
        return found;
    std::string status;
    const auto own = session.open({}, {{"receives", 1}}, [&](Connection &made) {
        status = code_name(made.conn.send(made.memory.mr, 0, 8, ALWAYS));
    });
    found.emplace_back("of the client",
                       status == "ok" ? outcome(rpma::status::ok, *own) : status);
    found.emplace_back("of the client, received",
                       session.ask({{"do", "taken"}, {"number", own->number}, {"count", 1}})
                           .at("received")
                           .dump());
    session.close(*own);
    const auto other = session.open({{"receives", 1}}, {{"sends", true}});
    const auto received = other->take_received(1);
    found.emplace_back("of the server, received",
                       received.empty() ? "no completion" : status_name(received[0].status));
    session.close(*other);
    return found;
}

// Two requests are under way, and the server accepts the later one first.
Results two_requests(Session &session) {
    Connection first(session.peer, {}), second(session.peer, {});
    const auto begin = [&](Connection &made, const std::string &data) {
        rpma::conn_req request(session.peer, session.options.address, session.options.port,
                               made.cfg);
        made.conn = std::move(request).connect(as_data(data));
    };
    const unsigned number = session.reserve();
    const std::string data = session.start_connection();
    begin(first, greeting("data", number));
    begin(second, data);
    Results found = {{"later", second.event()}};
    second.number = session.finish().value("number", -1);
    session.start({{"do", "accept"}, {"connection", number}, {"settings", Json::object()}});
    found.emplace_back("earlier", first.event());
    first.number = session.finish().value("number", -1);
    session.close(first);
    session.close(second);
    return found;
}

Results ends(Session &session) {
    Results found;
    const auto own = session.open();
    own->conn.disconnect();
    found.emplace_back("disconnected, other side",
                       session.ask({{"do", "close"}, {"number", own->number}}).at("event"));
    found.emplace_back("disconnected, own side", own->event());
    const auto other = session.open();
    (void)session.ask(
        {{"do", "close"}, {"number", other->number}, {"first", true}, {"waits", false}});
    found.emplace_back("by the other side", other->event());
    other->conn.disconnect();
    auto deleted = session.open();
    const int number = deleted->number;
    deleted.reset();
    found.emplace_back("deleted, other side",
                       session.ask({{"do", "close"}, {"number", number}}).at("event"));
    return found;
}

// Connects with private data, and returns the event, or the error.
std::string connect_with(Session &session, Connection &made, const std::string &data) {
    rpma::conn_req request(session.peer, session.options.address, session.options.port,
                           made.cfg);
    try {
        made.conn = std::move(request).connect(as_data(data));
    } catch (const rpma::error &error) {
        return code_name(static_cast<rpma::status>(error.code().value()));
    }
    return made.event();
}

Results private_data(Session &session) {
    Results found;
    for (const auto &[size, reply] : {std::pair(56, 0), {57, 0}, {0, 196}, {0, 197}}) {
        const std::string name = reply ? fmt::format("reply of {} bytes", reply)
                                       : fmt::format("request of {} bytes", size);
        Connection made(session.peer, {});
        std::string data = session.start_connection({{"reply", reply}});
        const std::string number = data;
        data.resize(std::max(data.size(), static_cast<size_t>(size)), 'q');
        const std::string event = connect_with(session, made, data);
        found.emplace_back(name, event);
        if (!made.conn.get()) { // the server still waits
            Connection other(session.peer, {});
            (void)connect_with(session, other, number);
            (void)session.finish();
            continue;
        }
        const Json accepted = session.finish();
        if (!accepted.contains("number"))
            continue;
        found.emplace_back(name + ", received",
                           std::to_string(reply ? made.conn.get_private_data().size()
                                                : accepted.value("private", size_t{0})));
        made.number = accepted.at("number");
        session.close(made);
    }
    return found;
}

Results reject(Session &session) {
    Results found;
    for (const auto &[name, how] : {std::pair("rejected", "reject"), {"deleted", "drop"}}) {
        Connection made(session.peer, {});
        const std::string data = session.start_connection({{"how", how}, {"reply", 100}});
        found.emplace_back(name, connect_with(session, made, data));
        found.emplace_back(fmt::format("{}, private data", name),
                           std::to_string(made.conn.get_private_data().size()));
        (void)session.finish();
    }
    Connection unheard(session.peer, {});
    const std::string port = session.ask({{"do", "free port"}}).value("port", "1");
    try {
        rpma::conn_req request(session.peer, session.options.address, port, unheard.cfg);
        unheard.conn = std::move(request).connect();
        found.emplace_back("no listener", unheard.event());
    } catch (const rpma::error &) { // iWARP connects in the call
        found.emplace_back("no listener", "refused");
    }
    return found;
}

// ---- order and queues --------------------------------------------------------------------

bool in_order(const std::vector<ibv_wc> &completions, const Connection &connection) {
    for (size_t i = 0; i < completions.size(); i++)
        if (completions[i].wr_id != reinterpret_cast<uintptr_t>(connection.memory.at(64 * i)))
            return false;
    return true;
}

std::string order_of(const std::vector<ibv_wc> &completions, const Connection &connection,
                     size_t count) {
    if (completions.size() != count)
        return fmt::format("{} of {}", completions.size(), count);
    return in_order(completions, connection) ? "in order" : "out of order";
}

Results order(Session &session) {
    Results found;
    const auto made = session.open({{"receives", 8}, {"rcq", 16}});
    Connection &c = *made;
    for (size_t i = 0; i < 8; i++)
        rpma::check(
            i % 2 == 0
                ? c.conn.write(c.remote, 0, c.memory.mr, 0, 1024, ALWAYS, c.memory.at(64 * i))
                : c.conn.read(c.memory.mr, 4096, c.remote, 0, 8, ALWAYS, c.memory.at(64 * i)));
    found.emplace_back("writes and reads", order_of(c.take(8), c, 8));
    session.close(c);
    const auto flushed = c.take_received(8);
    found.emplace_back("flushed receives", order_of(flushed, c, 8));
    found.emplace_back("status of flushed receives",
                       flushed.empty() ? "none" : status_name(flushed[0].status));
    return found;
}

// Posts more messages than fit. On InfiniBand and RoCE they wait for the receives of the other
// side; on iWARP the receives are there before.
Results full_queue(Session &session) {
    constexpr uint32_t POSTS = 300;
    Results found;
    const auto made = session.open({{"sq", 16}, {"cq", 2 * POSTS}, {"rnr", 7}},
                                   {{"rq", 2 * POSTS},
                                    {"rnr", 7},
                                    {"rnr_ms", 10},
                                    {"receives", session.is_iwarp() ? 2 * POSTS : 0}});
    Connection &c = *made;
    const std::vector<rpma_work> works(
        POSTS, rpma::send{.local = {c.memory.mr, 0, 8}, .flags = ALWAYS});
    const auto next = std::span(works).first(1);
    uint32_t posted = 0, again = 0;
    found.emplace_back("status", code_name(c.conn.post(works, &posted)));
    found.emplace_back("entries", std::to_string(posted));
    if (!session.is_iwarp())
        (void)session.ask({{"do", "receive"}, {"number", c.number}, {"count", POSTS + 50}});
    const auto taken = [&](uint32_t count, double limit) {
        return session.ask(
            {{"do", "taken"}, {"number", c.number}, {"count", count}, {"limit", limit}});
    };
    found.emplace_back("each message arrives once",
                       yes_or_no(taken(posted, 20).value("received", 0U) == posted));
    found.emplace_back("no further message",
                       yes_or_no(taken(1, 0.05).value("completions", 1) == 0));
    // The queue had room for these; no completion was polled.
    for (const Clock clock; again == 0 && clock.wait(0.1);)
        (void)c.conn.post(next, &again);
    found.emplace_back("entries are free before the poll", yes_or_no(again > 0));
    found.emplace_back("completions",
                       yes_or_no(c.take(posted + again).size() == posted + again));
    found.emplace_back("entries are free after the poll", outcome(c.conn.post(next), c));
    session.close(c);
    return found;
}

// As many entries and SGEs as the device reports, in a connection. Queues of a million entries
// would need seconds and the memory of the machine.
Results depths(Session &session) {
    Results found;
    ibv_device_attr attr{};
    if (ibv_query_device(session.peer.get_ibv_pd()->context, &attr) != 0)
        return {{"query", "failed"}};
    const auto attempt = [&](const char *name, const char *setting, int value) {
        try {
            const auto made = session.open({{setting, value}, {"cq", 16}});
            found.emplace_back(
                name, outcome(made->conn.write(made->remote, 0, made->memory.mr, 0, 8, ALWAYS),
                              *made));
            session.close(*made);
        } catch (const rpma::error &error) {
            found.emplace_back(name,
                               code_name(static_cast<rpma::status>(error.code().value())));
        }
    };
    const int most = std::min(attr.max_qp_wr, 16384);
    attempt("max_qp_wr sends", "sq", most);
    attempt("more sends than max_qp_wr", "sq", attr.max_qp_wr + 1);
    attempt("max_qp_wr receives", "rq", most);
    attempt("max_sge SGEs", "sge", std::min(attr.max_sge, 128));
    return found;
}

Results batches(Session &session) {
    Results found;
    const auto made = session.open({{"sq", 16}}, {{"rq", 64}, {"receives", 64}});
    Connection &c = *made;
    const rpma_work work = rpma::send{.local = {c.memory.mr, 0, 8}, .flags = ALWAYS};
    rpma::batch batch(c.conn, 5);
    for (unsigned i = 0; i < 5; i++)
        rpma::check(batch.add(work));
    for (unsigned i = 0; i < 2; i++) {
        found.emplace_back(i == 0 ? "first post" : "second post", outcome(batch.post(), c, 5));
        const Json taken =
            session.ask({{"do", "taken"}, {"number", c.number}, {"count", 6}, {"limit", 0.3}});
        found.emplace_back(i == 0 ? "messages of the first" : "messages of the second",
                           taken.at("received").dump());
    }
    session.close(c);
    return found;
}

// ---- processes and sharing ---------------------------------------------------------------

// The child writes to all pages of the registered memory.
Results forked(Session &session) {
    Results found;
    const auto made = session.open();
    Connection &c = *made;
    std::memset(c.memory.at(0), 'p', 4096);
    const pid_t child = fork();
    if (child == 0) {
        std::memset(c.memory.at(0), 'c', 4096);
        _exit(0);
    }
    std::memset(c.memory.at(0), 'q', 4096); // copies the page, unless fork is supported
    (void)waitpid(child, nullptr, 0);
    found.emplace_back("write",
                       outcome(c.conn.write(c.remote, 0, c.memory.mr, 0, 4096, ALWAYS), c));
    found.emplace_back("write, data of this process",
                       yes_or_no(session.peek(0, 4096) == std::string(4096, 'q')));
    session.poke(0, std::string(64, 'r'));
    found.emplace_back("read",
                       outcome(c.conn.read(c.memory.mr, 0, c.remote, 0, 64, ALWAYS), c));
    found.emplace_back("read, data arrives in this process",
                       yes_or_no(std::string(c.memory.at(0), 64) == std::string(64, 'r')));
    session.close(c);
    return found;
}

Results shared_queue(Session &session) {
    Results found;
    std::unique_ptr<Connection> all[2];
    for (auto &each : all) {
        try {
            each = session.open({}, {{"srq", true}, {"receives", 4}});
        } catch (const Late &late) {
            return {{"created", "no"}};
        }
    }
    found.emplace_back("created", "yes");
    for (auto &each : all)
        for (unsigned i = 0; i < 2; i++)
            found.emplace_back(fmt::format("message {}", found.size()),
                               outcome(each->conn.send(each->memory.mr, 0, 8, ALWAYS), *each));
    unsigned received = 0;
    for (auto &each : all)
        received += session.ask({{"do", "taken"}, {"number", each->number}, {"count", 2}})
                        .value("received", 0U);
    found.emplace_back("messages received", std::to_string(received));
    session.close(*all[0]);
    Connection &last = *all[1];
    found.emplace_back("message after the end of the other connection",
                       outcome(last.conn.send(last.memory.mr, 0, 8, ALWAYS), last));
    session.close(last);
    return found;
}

Results shared_channel(Session &session) {
    Results found;
    const auto made = session.open({{"shared", true}, {"rcq", 16}, {"receives", 2}});
    Connection &c = *made;
    const auto wait = [&](const std::string &of) {
        rpma::cq_ref ready;
        bool is_receive = of == "sends";
        pollfd channel = {c.conn.get_compl_fd(), POLLIN, 0};
        const bool is_signaled = poll(&channel, 1, 5000) == 1;
        found.emplace_back(of + ": channel is signaled", yes_or_no(is_signaled));
        if (is_signaled) {
            found.emplace_back(of + ": wait", code_name(c.conn.wait(ready, &is_receive)));
            found.emplace_back(of + ": queue of receives", yes_or_no(is_receive));
        }
    };
    rpma::check(c.conn.write(c.remote, 0, c.memory.mr, 0, 8, ALWAYS));
    wait("sends");
    found.emplace_back("sends: completion", outcome(rpma::status::ok, c));
    (void)session.ask({{"do", "send"}, {"number", c.number}});
    wait("receives");
    const auto received = c.take_received(1);
    found.emplace_back("receives: completion",
                       received.empty() ? "no completion" : status_name(received[0].status));
    session.close(c);
    return found;
}

Results path(Session &session) {
    const Json mapped = session.ask({{"do", "path"}});
    if (mapped.value("error", "") == "no path")
        return {};
    if (!mapped.contains("descriptor"))
        return {{"registered", mapped.value("error", "no")}};
    Results found = {{"registered", "yes"}};
    const auto made = session.open();
    Connection &c = *made;
    const auto descriptor = from_hex(mapped.at("descriptor"));
    rpma::mr_remote region(descriptor);
    c.conn.apply_remote_peer_cfg(rpma::peer_cfg().set_direct_write_to_pmem(true));
    std::memset(c.memory.at(0), 'd', 1024);
    rpma::check(c.conn.write(region, 0, c.memory.mr, 0, 1024, ON_ERROR));
    found.emplace_back(
        "persistent flush",
        outcome(c.conn.flush(region, 0, 1024, RPMA_FLUSH_TYPE_PERSISTENT, ALWAYS), c));
    const auto bytes = from_hex(session.ask({{"do", "path"}, {"size", 1024}}).at("bytes"));
    found.emplace_back("data", yes_or_no(std::ranges::all_of(bytes, [](std::byte each) {
                           return each == static_cast<std::byte>('d');
                       })));
    session.close(c);
    return found;
}

} // namespace

const std::vector<Question> &questions() {
    static const std::vector<Question> ALL = {{"set-up", set_up},
                                              {"two requests", two_requests},
                                              {"early message", early_messages},
                                              {"end", ends},
                                              {"private data", private_data},
                                              {"refused", reject},
                                              {"order", order},
                                              {"full queue", full_queue},
                                              {"limits", depths},
                                              {"batch", batches},
                                              {"message", messages},
                                              {"inline data", inline_data},
                                              {"atomics", atomics},
                                              {"concurrent", torn},
                                              {"unfenced", unfenced},
                                              {"flush of writes", flush},
                                              {"fork", forked},
                                              {"shared receive queue", shared_queue},
                                              {"shared channel", shared_channel},
                                              {"path", path}};
    return ALL;
}
