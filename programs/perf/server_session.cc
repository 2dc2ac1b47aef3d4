// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server_session.cc -- the server's session with one client: connections, messages and load

#include "server_session.hh"

#include "load_client.hh"
#include "load_connection.hh"
#include "load_server.hh"
#include "random.hh"

#include <numeric>
#include <sys/mman.h>

static constexpr int IDLE_MS = 60000;

static Mapping map_memory(const Options &options) {
    if (options.memory.empty())
        return {};
    Mapping memory = Mapping::map(options.memory, PROT_READ | PROT_WRITE);
    if (options.direct_write && !memory.is_persistent())
        fail("--direct-write: {} is neither a file on FS-DAX nor a device DAX", options.memory);
    return memory;
}

Server::Server(const Options &parsed)
    : options(parsed), memory(map_memory(options)),
      device(options.address, RPMA_UTIL_IBV_CONTEXT_LOCAL),
      self(describe_side(device.name, memory.kind())) {}

uint64_t Server::used() const {
    return std::accumulate(clients.begin(), clients.end(), UINT64_C(0),
                           [](uint64_t sum, const ServerSession &client) {
                               const LoadGenerator *generator = client.loop.generator.get();
                               return sum + (generator ? generator->memory.size() : 0);
                           });
}

// ---- connections ---------------------------------------------------------------------------

ServerSession::ServerSession(Server &of, rpma::conn_req &&request, const Greeting &greeting)
    : server(of), loop(server.device.peer), protocol(greeting.protocol),
      last_activity_(now_ns()) {
    loop.control.link.take(std::move(request));
    loop.watch_control();
}

void ServerSession::take_connection(rpma::conn_req &&request, const Greeting &greeting) {
    LoadGenerator *generator = loop.generator.get();
    if (!generator || greeting.number >= generator->connections.size())
        return; // the destructor rejects the request
    Connection &connection = generator->connections[greeting.number];
    if (generator->operation.is_connect())
        connection.link =
            CmLink(); // the client may detect the end of the previous connection first
    else if (state_ != State::prepared || connection.link.fd >= 0)
        return;
    try {
        connection.link.take(std::move(request));
        loop.watch(connection);
        on_connection(connection);
    } catch (const std::exception &why) {
        if (state_ != State::idle)
            refuse(why.what());
    }
    last_activity_ = now_ns();
}

// A client that measures "connect" may disconnect before this side has read the event
// ESTABLISHED: this is not a failure.
void ServerSession::on_connection(Connection &connection) {
    try {
        advance(connection);
    } catch (const std::exception &) {
        if (!connection.generator->operation.is_connect())
            throw;
        connection.link = CmLink();
    }
}

void ServerSession::advance(Connection &connection) {
    LoadGenerator &generator = *connection.generator;
    switch (connection.link.advance()) {
    case CmLink::Step::none:
        return;
    case CmLink::Step::ready: {
        const rpma::conn_cfg cfg =
            generator.cfg_of(connection, serve_queues(generator.plan),
                             generator.operation.is_echoed || generator.plan.both);
        attempt("cannot accept a connection", [&] { connection.link.request.setup(cfg); });
        serve_post_receives(connection);
        return connection.link.connect(greeting_text("data", 0, 0));
    }
    case CmLink::Step::established:
        if (generator.plan.both) {
            generator.apply_target(connection);
            prepare(connection);
        }
        generator.connected++;
        last_activity_ = now_ns();
        return begin();
    case CmLink::Step::ended: // the client disconnects after a load
        if (generator.operation.is_connect())
            connection.link = CmLink();
    }
}

bool ServerSession::is_idle() const {
    return state_ == State::idle && loop.control.link.has_ended;
}

// A client that sends without a pause must not stop the service of the others.
bool ServerSession::advance() {
    constexpr int EVENTS_MAX = 64;
    for (int i = 0; i < EVENTS_MAX; i++) {
        const Event event = loop.poll(0);
        if (event == Event::none)
            return false;
        try {
            if (event == Event::message && protocol == PROTOCOL)
                handle(decode(loop.in));
            if (event == Event::connection && loop.generator)
                on_connection(loop.generator->connections[loop.connection]);
        } catch (const std::exception &why) {
            if (event == Event::message || state_ != State::idle)
                refuse(why.what()); // reports only the first failure of a load's connections
        }
        if (event == Event::message)
            last_activity_ = now_ns();
        if (event == Event::connection && loop.generator && state_ != State::idle &&
            loop.generator->connections[loop.connection].link.has_ended)
            loop.generator->connections[loop.connection].link.end(); // the client is lost
    }
    return true;
}

void ServerSession::check_timeouts() {
    loop.control.keep_alive();
    if (is_past(last_activity_, IDLE_MS))
        fail("no message from the client for {} s", IDLE_MS / 1000);
    if (state_ != State::stopping)
        return;
    try {
        end_load();
    } catch (const std::exception &why) {
        refuse(why.what());
    }
}

// ---- the client's messages -----------------------------------------------------------------

// Reports the failure to the client and to the operator.
void ServerSession::refuse(const std::string &why) {
    state_ = State::idle;
    print_error("refused: " + why);
    loop.control.send(message("refused", {{"reason", printable(why)}}));
}

void ServerSession::on_hello() {
    loop.control.send(message("welcome", {{"librpma", server.self.librpma},
                                          {"kernel", server.self.kernel},
                                          {"device", server.self.device},
                                          {"memory", server.self.memory},
                                          {"direct_write", server.options.direct_write},
                                          {"atomics", server.device.has_atomics()}}));
}

void ServerSession::make_generator(const Plan &plan) {
    // "connect" never uses the region, but a region cannot be empty.
    const uint64_t size = std::max(plan.target_size(), PLACE_ALIGNMENT) +
                          (plan.both ? plan.connections * connection_memory_size(plan) : 0);
    int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND |
                RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    if (plan.both)
        usage |= RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST;
    if (plan.op().is_persistent()) // the client has checked that the server states direct write
        usage |= RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    if (plan.op().is_fetching())
        usage |= RPMA_MR_USAGE_ATOMIC;
    const uint64_t used = server.used();
    if (server.memory.size() && server.memory.size() < size)
        fail("{} has {} bytes, these settings need {}", server.options.memory,
             server.memory.size(), size);
    if (server.memory.size() && used)
        fail("another client uses {}", server.options.memory);
    if (!server.memory.size() &&
        (used > server.options.limit || size > server.options.limit - used))
        fail("these settings need {} bytes of memory, the server's --limit is {}{}", size,
             server.options.limit, used ? fmt::format(", and other clients use {}", used) : "");
    loop.begin(std::make_unique<LoadGenerator>(
        plan, server.device.peer, serve_queues(plan),
        server.memory.size() ? Mapping() : Mapping::allocate(size),
        server.memory.size() ? server.memory.first(size) : std::span<char>(), usage));
    if (plan.verify || plan.op().is_fetching())
        serve_fill(*loop.generator);
}

void ServerSession::on_plan(const Json &message_of_plan) {
    loop.generator.reset();
    state_ = State::prepared;
    is_begin_requested_ = false;
    try {
        make_generator(parse_plan(message_of_plan));
        if (loop.generator->plan.both)
            loop.generator->take_target(message_of_plan["target"]);
        // Random, because it authenticates the connections of this client's load.
        session_number = random_number();
        loop.control.send(message(
            "ready", {{"session", session_number},
                      {"target", loop.generator->target(server.options.direct_write)}}));
    } catch (...) {
        loop.generator.reset();
        throw;
    }
}

// The client may send this before the server has read that all connections are established.
void ServerSession::on_begin() {
    if (state_ != State::prepared || is_begin_requested_)
        fail("unexpected message: begin");
    is_begin_requested_ = true;
    begin();
}

void ServerSession::begin() {
    LoadGenerator &generator = *loop.generator;
    if (!is_begin_requested_ ||
        (generator.connected < generator.plan.connections && !generator.operation.is_connect()))
        return;
    if (generator.operation.is_message)
        generator.start(run_serve);
    is_begin_requested_ = false;
    state_ = State::running;
    loop.control.send(message("ok"));
}

// With --both, the server's load begins after the client's warm-up: on iWARP, the client must
// send first on each connection.
void ServerSession::on_measure() {
    if (state_ != State::running)
        fail("unexpected message: measure");
    LoadGenerator &generator = *loop.generator;
    cpu_before_ = cpu_ns();
    measured_from_ = now_ns();
    state_ = State::measuring;
    if (generator.plan.both) {
        generator.limits = {.warmup = 0, .duration_ns = DURATION_MAX_S * 1000000000};
        generator.open_gate();
        generator.start(run_load);
    }
    loop.control.send(message("ok"));
}

// Does not block: some messages may be in flight, and some that the client counted may never
// arrive.
void ServerSession::on_stop(const std::vector<uint64_t> &done) {
    const uint64_t cpu = cpu_ns() - cpu_before_, took = now_ns() - measured_from_;
    if (state_ != State::measuring)
        fail("unexpected message: stop");
    const LoadGenerator &generator = *loop.generator;
    if (done.size() != generator.connections.size())
        fail("the client did not report its operation counts");
    counts_ = done;
    counts_received_at_ = now_ns();
    result_ = message("result", {{"cpu_ns", cpu},
                                 {"operations", generator.progress()},
                                 {"ns", generator.plan.both ? took : 0}});
    state_ = State::stopping;
    end_load();
}

void ServerSession::end_load() {
    LoadGenerator &generator = *loop.generator;
    if (generator.plan.verify && !is_past(counts_received_at_, PEER_TIMEOUT_MS) &&
        !generator.has_failed() && !serve_received_all(generator, counts_))
        return;
    generator.check();
    if (generator.plan.verify)
        serve_check(generator, counts_);
    generator.stop();
    generator.check();
    loop.control.send(result_);
    state_ = State::idle;
}

void ServerSession::handle(const Json &request) {
    const auto &type = request["word"].get_ref<const std::string &>();
    if (type == "hello")
        return on_hello();
    if (type == "plan")
        return on_plan(request);
    if (type == "begin")
        return on_begin();
    if (type == "stop")
        return on_stop(request["done"]);
    if (type == "measure")
        return on_measure();
    if (type != "alive") // the client's keepalive
        fail("\"{}\" is not a message of a client", type);
    loop.control.send(message("ok"));
}
