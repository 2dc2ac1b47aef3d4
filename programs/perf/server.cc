// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.cc -- serves the plans of one client after the other

#include "lane.hh"
#include "load.hh"
#include "random.hh"
#include "report.hh"
#include "serve.hh"
#include "session.hh"
#include "sides.hh"

#include <sys/mman.h>

namespace {

constexpr int IDLE_MS = 60000;

class Server {
  public:
    explicit Server(const Options &wanted);
    int serve();

  private:
    rpma::conn_req next_request(const rpma::conn_cfg &cfg);
    void serve_next(bool &is_served);
    void serve_client();
    void on_request();
    void accept_lane(rpma::conn_req &&request);
    void answer(const Json &message);
    void refuse(const std::string &why);
    void on_hello();
    void on_plan(const Json &message);
    void make_crew(const Plan &plan);
    void on_measure();
    void on_begin();
    void on_stop(const std::vector<uint64_t> &counts);

    // From a plan to its result, the loss of the client is a failure.
    enum class State { idle, prepared, running, measuring };

    const Options &options;
    Memory memory; // empty: DRAM, allocated for each plan
    Session session;
    Side self;
    State state = State::idle;
    uint64_t session_number = 0;
    uint64_t cpu_before = 0, measured_from = 0;
    uint64_t heard = 0; // when the client itself, not only its device, last sent or connected
};

Memory map_memory(const Options &options) {
    if (options.memory.empty())
        return {};
    Memory memory = Memory::map(options.memory, PROT_READ | PROT_WRITE);
    if (options.direct_write && !memory.is_persistent())
        fail("--direct-write: {} is neither a file on FS-DAX nor a device DAX", options.memory);
    return memory;
}

Server::Server(const Options &wanted)
    : options(wanted), memory(map_memory(options)),
      session(options.address, RPMA_UTIL_IBV_CONTEXT_LOCAL),
      self(describe_side(session.device, memory.kind())) {
    session.ep =
        attempt(fmt::format("cannot listen on {} port {}", options.address, options.port), [&] {
            return rpma::ep(session.peer, options.address.c_str(), options.port.c_str());
        });
    make_nonblocking(session.ep->get_fd());
    fmt::print("listening on {} port {}: device {}, memory {}{}{}\n", options.address,
               options.port, session.device, self.memory,
               options.memory.empty() ? "" : " that any client may overwrite",
               options.direct_write ? ", direct write stated" : "");
    fflush(stdout);
}

// ---- connections ---------------------------------------------------------------------------

// Owns nothing if no request waits.
rpma::conn_req Server::next_request(const rpma::conn_cfg &cfg) {
    return attempt("cannot take a connection", [&] { return session.ep->next_conn_req(cfg); });
}

void Server::accept_lane(rpma::conn_req &&request) {
    Crew &crew = *session.crew;
    serve_post_receives(crew, request);
    crew.lanes[crew.connected].link.open(std::move(request), "data", 0, 0);
    if (crew.plan.both) {
        crew.apply_target(crew.lanes[crew.connected]);
        prepare(crew.lanes[crew.connected]);
    }
    crew.connected++;
    heard = now_ns();
}

// Accepts the next connection of the load and rejects all others.
void Server::on_request() {
    const Crew *crew = session.crew.get();
    const bool is_expected = crew && crew->connected < crew->plan.connections;
    rpma::conn_cfg cfg =
        is_expected ? session.crew->next_cfg(serve_queues(crew->plan)) : link_cfg();
    if (is_expected && (crew->operation.is_echoed || crew->plan.both)) {
        cfg.set_max_sge(static_cast<uint32_t>(crew->plan.elements));
        if (crew->plan.inline_size > ATOMIC_SIZE)
            cfg.set_inline_size(static_cast<uint32_t>(crew->plan.inline_size));
    }
    rpma::conn_req request = next_request(cfg);
    if (!request.get())
        return;
    const Greeting greeting = greeting_of(request.get_private_data());
    if (is_expected && greeting.protocol == PROTOCOL && greeting.kind == "data" &&
        greeting.session == session_number && greeting.number == crew->connected)
        accept_lane(std::move(request));
}

// Serves until the client has gone, or the program is to stop.
void Server::serve_client() {
    heard = now_ns();
    for (;;) {
        const uint64_t silent_ms = (now_ns() - heard) / 1000000;
        if (silent_ms >= IDLE_MS)
            fail("the client has said nothing for {} s", IDLE_MS / 1000);
        const News news = session.wait(IDLE_MS - static_cast<int>(silent_ms));
        if (news == News::stop)
            return;
        try {
            if (news == News::request)
                on_request();
            if (news == News::message)
                answer(decode(session.in));
        } catch (const std::exception &why) {
            refuse(why.what());
        }
        if (news == News::message)
            heard = now_ns();
    }
}

void Server::serve_next(bool &is_served) {
    const rpma::conn_cfg cfg = link_cfg();
    rpma::conn_req request = next_request(cfg);
    if (!request.get())
        return;
    const Greeting greeting = greeting_of(request.get_private_data());
    if (!greeting.is_ours)
        fail("somebody connected who is no rpma-perf");
    if (greeting.kind != "control")
        fail("a connection of a client that is gone");
    is_served = true;
    session.control.emplace(session.peer, std::move(request));
    try {
        if (greeting.protocol == PROTOCOL)
            return serve_client();
        session.wait(IDLE_MS); // until the client has read this side's protocol version
    } catch (const Failure &) {
        if (greeting.protocol == PROTOCOL &&
            (state != State::idle || !session.control->link.has_ended))
            throw;
    }
    if (greeting.protocol != PROTOCOL)
        fail("a client speaks version {} of the protocol, this server version {}",
             greeting.protocol, PROTOCOL);
}

int Server::serve() {
    bool is_fine = true;
    while (!is_stopping()) {
        bool is_served = false;
        if (!wait_readable(session.ep->get_fd(), IDLE_MS))
            continue;
        is_fine = true;
        try {
            serve_next(is_served);
        } catch (const std::exception &why) {
            complain(why.what());
            is_fine = false;
        }
        session.crew.reset();
        session.control.reset();
        state = State::idle;
        if (is_served && options.once)
            break;
    }
    return is_fine || !options.once ? EXIT_SUCCESS : EXIT_FAILURE;
}

// ---- the client's messages -----------------------------------------------------------------

// Reports the failure to the client and to the operator.
void Server::refuse(const std::string &why) {
    state = State::idle;
    complain("refused: " + why);
    session.control->send(message("refused", {{"reason", printable(why)}}));
}

void Server::on_hello() {
    session.control->send(message("welcome", {{"librpma", self.librpma},
                                              {"kernel", self.kernel},
                                              {"device", self.device},
                                              {"memory", self.memory},
                                              {"direct_write", options.direct_write}}));
}

void Server::make_crew(const Plan &plan) {
    const uint64_t size =
        plan.target_size() + (plan.both ? plan.connections * lane_memory_size(plan) : 0);
    int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND |
                RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    if (plan.both)
        usage |= RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST;
    if (plan.op().is_persistent()) // the client has checked that direct write is stated
        usage |= RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    if (memory.size() && memory.size() < size)
        fail("{} has {} bytes, these settings need {}", options.memory, memory.size(), size);
    if (!memory.size() && size > options.limit)
        fail("these settings need {} bytes of memory, the server's --limit is {}", size,
             options.limit);
    session.crew =
        std::make_unique<Crew>(plan, session.peer, serve_queues(plan),
                               memory.size() ? Memory() : Memory::allocate(size),
                               memory.size() ? memory.first(size) : std::span<char>(), usage);
    if (plan.verify)
        serve_fill(*session.crew);
}

void Server::on_plan(const Json &message_of_plan) {
    session.crew.reset();
    state = State::prepared;
    try {
        make_crew(plan_of(message_of_plan));
        if (session.crew->plan.both)
            session.crew->take_target(message_of_plan["target"]);
        // Random, because this number proves that a connection of the load is this client's.
        session_number = random_number();
        session.control->send(
            message("ready", {{"session", session_number},
                              {"target", session.crew->target(options.direct_write)}}));
    } catch (...) {
        session.crew.reset();
        throw;
    }
}

void Server::on_begin() {
    Crew *crew = session.crew.get();
    if (state != State::prepared || crew->connected < crew->plan.connections)
        fail("there is nothing to begin");
    if (crew->operation.is_message)
        crew->start(run_serve);
    state = State::running;
    session.control->send(message("ok"));
}

// With --both, the server's load begins once the client has sent something on each connection.
void Server::on_measure() {
    if (state != State::running)
        fail("there is nothing to measure");
    Crew &crew = *session.crew;
    cpu_before = cpu_ns();
    measured_from = now_ns();
    state = State::measuring;
    if (crew.plan.both) {
        crew.limits = {.warmup = 0, .duration_ns = DURATION_MAX_S * 1000000000};
        crew.open_gate();
        crew.start(run_load);
    }
    session.control->send(message("ok"));
}

void Server::on_stop(const std::vector<uint64_t> &counts) {
    const uint64_t cpu = cpu_ns() - cpu_before, took = now_ns() - measured_from;
    if (state != State::measuring)
        fail("there is nothing to stop");
    Crew &crew = *session.crew;
    const uint64_t operations = crew.progress();
    if (counts.size() != crew.lanes.size())
        fail("the client does not say how much it did");
    if (crew.plan.verify)
        serve_check(crew, counts);
    crew.stop();
    crew.check();
    session.control->send(message(
        "result",
        {{"cpu_ns", cpu}, {"operations", operations}, {"ns", crew.plan.both ? took : 0}}));
    state = State::idle;
}

void Server::answer(const Json &request) {
    const auto &word = request["word"].get_ref<const std::string &>();
    if (word == "hello")
        return on_hello();
    if (word == "plan")
        return on_plan(request);
    if (word == "begin")
        return on_begin();
    if (word == "stop")
        return on_stop(request["done"]);
    if (word == "measure")
        return on_measure();
    if (word != "alive") // which the client sends because a silent one is given up
        fail("\"{}\" is no word of a client", word);
    session.control->send(message("ok"));
}

} // namespace

int run_server(const Options &options) {
    return Server(options).serve();
}
