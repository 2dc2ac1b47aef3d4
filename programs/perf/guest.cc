// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// guest.cc -- a client as the server sees it: its connections, its messages and its load

#include "guest.hh"

#include "lane.hh"
#include "load.hh"
#include "random.hh"
#include "serve.hh"

#include <numeric>
#include <sys/mman.h>

static constexpr int IDLE_MS = 60000;

static Memory map_memory(const Options &options) {
    if (options.memory.empty())
        return {};
    Memory memory = Memory::map(options.memory, PROT_READ | PROT_WRITE);
    if (options.direct_write && !memory.is_persistent())
        fail("--direct-write: {} is neither a file on FS-DAX nor a device DAX", options.memory);
    return memory;
}

House::House(const Options &wanted)
    : options(wanted), memory(map_memory(options)),
      device(options.address, RPMA_UTIL_IBV_CONTEXT_LOCAL),
      self(describe_side(device.name, memory.kind())) {}

uint64_t House::used() const {
    return std::accumulate(guests.begin(), guests.end(), UINT64_C(0),
                           [](uint64_t sum, const Guest &guest) {
                               const Crew *crew = guest.session.crew.get();
                               return sum + (crew ? crew->memory.size() : 0);
                           });
}

// ---- connections ---------------------------------------------------------------------------

Guest::Guest(House &of, rpma::conn_req &&request, const Greeting &greeting)
    : house(of), session(house.device.peer), protocol(greeting.protocol), heard(now_ns()) {
    session.control.link.take(std::move(request));
    session.enter();
}

void Guest::take_lane(rpma::conn_req &&request, const Greeting &greeting) {
    Crew *crew = session.crew.get();
    if (!crew || greeting.number >= crew->lanes.size())
        return; // a request that nobody takes is rejected
    Lane &lane = crew->lanes[greeting.number];
    if (crew->operation.is_connect())
        lane.link = Link(); // the client may know the end of the last one already
    else if (state != State::prepared || lane.link.fd >= 0)
        return;
    try {
        lane.link.take(std::move(request));
        session.watch(lane);
        on_lane(lane);
    } catch (const std::exception &why) {
        if (state != State::idle)
            refuse(why.what());
    }
    heard = now_ns();
}

// The client of the operation "connect" may take a connection down before this side knows that
// it is up, and measures itself what that means.
void Guest::on_lane(Lane &lane) {
    try {
        go_on(lane);
    } catch (const std::exception &) {
        if (!lane.crew->operation.is_connect())
            throw;
        lane.link = Link();
    }
}

void Guest::go_on(Lane &lane) {
    Crew &crew = *lane.crew;
    switch (lane.link.go_on()) {
    case Link::Step::none:
        return;
    case Link::Step::ready: {
        const rpma::conn_cfg cfg = crew.cfg_of(lane, serve_queues(crew.plan),
                                               crew.operation.is_echoed || crew.plan.both);
        attempt("cannot take a connection", [&] { lane.link.request.setup(cfg); });
        serve_post_receives(lane);
        return lane.link.connect(greeting_text("data", 0, 0));
    }
    case Link::Step::established:
        if (crew.plan.both) {
            crew.apply_target(lane);
            prepare(lane);
        }
        crew.connected++;
        heard = now_ns();
        return begin();
    case Link::Step::ended: // after a load the client takes its connections down
        if (crew.operation.is_connect())
            lane.link = Link();
    }
}

bool Guest::is_idle() const {
    return state == State::idle && session.control.link.has_ended;
}

void Guest::go_on() {
    News news = News::none;
    while ((news = session.look(0)) != News::none) {
        try {
            if (news == News::message && protocol == PROTOCOL)
                answer(decode(session.in));
            if (news == News::lane && session.crew)
                on_lane(session.crew->lanes[session.lane]);
        } catch (const std::exception &why) {
            if (news == News::message || state != State::idle)
                refuse(why.what()); // of the connections of a load, only the first failure
        }
        if (news == News::message)
            heard = now_ns();
        if (news == News::lane && session.crew && state != State::idle &&
            session.crew->lanes[session.lane].link.has_ended)
            session.crew->lanes[session.lane].link.end(); // the client is lost
    }
}

void Guest::tick() {
    session.control.beat();
    if (is_past(heard, IDLE_MS))
        fail("the client has said nothing for {} s", IDLE_MS / 1000);
    if (state != State::stopping)
        return;
    try {
        end_load();
    } catch (const std::exception &why) {
        refuse(why.what());
    }
}

// ---- the client's messages -----------------------------------------------------------------

// Reports the failure to the client and to the operator.
void Guest::refuse(const std::string &why) {
    state = State::idle;
    complain("refused: " + why);
    session.control.send(message("refused", {{"reason", printable(why)}}));
}

void Guest::on_hello() {
    session.control.send(message("welcome", {{"librpma", house.self.librpma},
                                             {"kernel", house.self.kernel},
                                             {"device", house.self.device},
                                             {"memory", house.self.memory},
                                             {"direct_write", house.options.direct_write},
                                             {"atomics", house.device.has_atomics()}}));
}

void Guest::make_crew(const Plan &plan) {
    // The region of a load that moves nothing is never used, and none is empty.
    const uint64_t size = std::max(plan.target_size(), SLOT_ALIGNMENT) +
                          (plan.both ? plan.connections * lane_memory_size(plan) : 0);
    int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND |
                RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    if (plan.both)
        usage |= RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST;
    if (plan.op().is_persistent()) // the client has checked that direct write is stated
        usage |= RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    if (plan.op().is_fetching())
        usage |= RPMA_MR_USAGE_ATOMIC;
    const uint64_t used = house.used();
    if (house.memory.size() && house.memory.size() < size)
        fail("{} has {} bytes, these settings need {}", house.options.memory,
             house.memory.size(), size);
    if (house.memory.size() && used)
        fail("another client uses {}", house.options.memory);
    if (!house.memory.size() &&
        (used > house.options.limit || size > house.options.limit - used))
        fail("these settings need {} bytes of memory, the server's --limit is {}{}", size,
             house.options.limit, used ? fmt::format(", and other clients use {}", used) : "");
    session.begin(std::make_unique<Crew>(
        plan, house.device.peer, serve_queues(plan),
        house.memory.size() ? Memory() : Memory::allocate(size),
        house.memory.size() ? house.memory.first(size) : std::span<char>(), usage));
    if (plan.verify || plan.op().is_fetching())
        serve_fill(*session.crew);
}

void Guest::on_plan(const Json &message_of_plan) {
    session.crew.reset();
    state = State::prepared;
    is_asked_to_begin = false;
    try {
        make_crew(plan_of(message_of_plan));
        if (session.crew->plan.both)
            session.crew->take_target(message_of_plan["target"]);
        // Random, because this number proves that a connection of the load is this client's.
        session_number = random_number();
        session.control.send(
            message("ready", {{"session", session_number},
                              {"target", session.crew->target(house.options.direct_write)}}));
    } catch (...) {
        session.crew.reset();
        throw;
    }
}

// The client may know that its connections are up before the server does.
void Guest::on_begin() {
    if (state != State::prepared || is_asked_to_begin)
        fail("there is nothing to begin");
    is_asked_to_begin = true;
    begin();
}

void Guest::begin() {
    Crew &crew = *session.crew;
    if (!is_asked_to_begin ||
        (crew.connected < crew.plan.connections && !crew.operation.is_connect()))
        return;
    if (crew.operation.is_message)
        crew.start(run_serve);
    is_asked_to_begin = false;
    state = State::running;
    session.control.send(message("ok"));
}

// With --both, the server's load begins once the client has sent something on each connection.
void Guest::on_measure() {
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
    session.control.send(message("ok"));
}

// Messages may still be on their way to the workers, and others that the client states never
// come: nobody waits for them here.
void Guest::on_stop(const std::vector<uint64_t> &done) {
    const uint64_t cpu = cpu_ns() - cpu_before, took = now_ns() - measured_from;
    if (state != State::measuring)
        fail("there is nothing to stop");
    const Crew &crew = *session.crew;
    if (done.size() != crew.lanes.size())
        fail("the client does not say how much it did");
    counts = done;
    asked = now_ns();
    result = message(
        "result",
        {{"cpu_ns", cpu}, {"operations", crew.progress()}, {"ns", crew.plan.both ? took : 0}});
    state = State::stopping;
    end_load();
}

void Guest::end_load() {
    Crew &crew = *session.crew;
    if (crew.plan.verify && !is_past(asked, PATIENCE_MS) && !crew.has_failed() &&
        !serve_has_all(crew, counts))
        return;
    crew.check();
    if (crew.plan.verify)
        serve_check(crew, counts);
    crew.stop();
    crew.check();
    session.control.send(result);
    state = State::idle;
}

void Guest::answer(const Json &request) {
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
    session.control.send(message("ok"));
}
