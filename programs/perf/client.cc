// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.cc -- runs one load after the other and reports the results

#include "lane.hh"
#include "load.hh"
#include "plot.hh"
#include "recording.hh"
#include "report.hh"
#include "session.hh"
#include "sides.hh"

#include <algorithm>
#include <fstream>

namespace {

constexpr int TICK_MS = 500;

// What is known of a load while it runs.
struct Progress {
    const uint64_t began = now_ns();
    uint64_t now = began, operations = 0;
    uint64_t moved = began;    // when an operation last completed
    uint64_t shown_at = began, // up to where an interval was reported
        shown = 0;
};

class Client {
  public:
    explicit Client(const Options &wanted);
    void run();

  private:
    News wait(int milliseconds);
    void go_on(Lane &lane);
    Json await(std::string_view word);
    Json ask(std::string_view word, std::string_view answer);
    void connect();
    std::vector<uint64_t> allowed_operations() const;
    void run_plan(const Plan &plan);
    void make_crew(const Plan &plan);
    void prepare_lanes(const Json &ready);
    [[noreturn]] void explain();
    Result run_load();
    void watch(bool (*is_reached)(const Crew &crew), bool is_measured);
    void beat(uint64_t &spoke);
    void show(Progress &progress, bool is_measured);
    void end_ledger(const char *failure);
    Result collect() const;

    const Options &options;
    Device device;
    Session session;
    uint64_t session_number = 0; // of the load, at the server
    Side self, server;
    std::unique_ptr<Report> report;
    std::ofstream picture; // is made before the first load, so that no load is in vain
    std::vector<Result> plotted;
};

Client::Client(const Options &wanted)
    : options(wanted), device(options.address, RPMA_UTIL_IBV_CONTEXT_REMOTE),
      session(device.peer) {}

// ---- asking the server ---------------------------------------------------------------------

void Client::go_on(Lane &lane) {
    Crew &crew = *session.crew;
    switch (lane.link.go_on()) {
    case Link::Step::none:
        return;
    case Link::Step::ready: {
        const rpma::conn_cfg cfg = crew.cfg_of(lane, lane_queues(crew.plan), true);
        attempt("cannot make a connection with these settings",
                [&] { lane.link.request.setup(cfg); });
        return lane.link.connect(greeting_text("data", session_number, lane.index));
    }
    case Link::Step::established:
        crew.apply_target(lane);
        prepare(lane);
        crew.connected++;
        return;
    case Link::Step::ended:
        lane.link.end();
    }
}

// Waits for the first news, and takes care of those of a connection.
News Client::wait(int milliseconds) {
    const News news = session.wait(milliseconds);
    if (news == News::lane)
        go_on(session.crew->lanes[session.lane]);
    return news;
}

// Waits for an answer of that word; a refusal of the server is a failure.
Json Client::await(std::string_view word) {
    const uint64_t until = now_ns() + uint64_t{PATIENCE_MS} * 1000000;
    News news = News::worker;
    while ((news == News::worker || news == News::lane) && now_ns() < until)
        news = wait(PATIENCE_MS);
    if (news == News::stop)
        fail("interrupted");
    if (news != News::message)
        fail("the server does not answer");
    Json answer = decode(session.in);
    if (answer["word"] == word)
        return answer;
    fail("the server refuses: {}", answer.value("reason", "no reason given"));
}

Json Client::ask(std::string_view word, std::string_view answer) {
    session.control.send(message(word));
    return await(answer);
}

// The private data of the connection shows whether the server is an rpma-perf of this protocol.
void check_greeting(const Greeting &greeting, const Options &options) {
    if (!greeting.is_ours)
        fail("{} port {} is no rpma-perf", options.address, options.port);
    if (greeting.protocol != PROTOCOL)
        fail("the server speaks version {} of the protocol, this client version {}: use the "
             "same "
             "rpma-perf on both sides",
             greeting.protocol, PROTOCOL);
}

void Client::connect() {
    const uint64_t until = now_ns() + uint64_t{PATIENCE_MS} * 1000000;
    Link &link = session.control.link;
    link.start(device.peer, options.address, options.port);
    session.enter();
    while (!link.is_established) {
        if (session.wait(TICK_MS) == News::stop)
            fail("interrupted while connecting");
        if (now_ns() >= until)
            fail("the other side does not answer");
    }
    check_greeting(greeting_of(link.conn.get_private_data()), options);
    // The client sends first, because on iWARP the server must not.
    const Json hello = ask("hello", "welcome");
    self = describe_side(device.name, "dram");
    server = {hello["librpma"], hello["kernel"], hello["device"], hello["memory"],
              hello["direct_write"]};
}

// A persistent flush is measured only if the server's operator states direct write to PMem.
std::vector<uint64_t> Client::allowed_operations() const {
    std::vector<uint64_t> kept;
    for (const uint64_t operation : options.operations) {
        if (server.direct_write || !operations[operation].is_persistent()) {
            kept.push_back(operation);
            continue;
        }
        constexpr char why[] = "the server states no direct write to persistent memory: start "
                               "it with --memory and "
                               "--direct-write where that is true (rpma-perf(1) says where)";
        if (!options.takes_all)
            fail("{}: {}", operations[operation].name, why);
        complain(fmt::format("{} is left out: {}", operations[operation].name, why));
    }
    return kept;
}

// ---- preparing a load ----------------------------------------------------------------------

void Client::make_crew(const Plan &plan) {
    int usage = RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_SEND |
                RPMA_MR_USAGE_RECV;
    if (plan.both)
        usage |= RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
                 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
    session.begin(std::make_unique<Crew>(
        plan, device.peer, lane_queues(plan),
        Memory::allocate(target_before_lanes(plan) + plan.connections * lane_memory_size(plan)),
        std::span<char>(), usage));
    session.crew->limits = options.limits;
    if (plan.both) // on iWARP the server must not send first
        session.crew->limits.warmup = std::max(options.limits.warmup, UINT64_C(1));
}

// The server may have sent the reason of a failure over the control connection.
void Client::explain() {
    Json answer;
    try {
        News news = News::lane;
        while (news == News::lane)
            if ((news = session.wait(TICK_MS)) == News::lane)
                try {
                    go_on(session.crew->lanes[session.lane]);
                } catch (const Failure &) { // the first failure counts
                }
        if (news == News::message)
            answer = decode(session.in);
    } catch (const Failure &) {
    }
    if (answer.contains("reason"))
        fail("the server refuses: {}", answer["reason"].get<std::string>());
    throw;
}

// All connections come up at the same time.
void Client::prepare_lanes(const Json &ready) {
    const uint64_t until = now_ns() + uint64_t{PATIENCE_MS} * 1000000;
    Crew &crew = *session.crew;
    crew.take_target(ready["target"]);
    session_number = ready["session"];
    try {
        for (Lane &lane : crew.lanes) {
            lane.link.start(device.peer, options.address, options.port);
            session.watch(lane);
        }
        while (crew.connected < crew.lanes.size()) {
            const News news = wait(TICK_MS);
            if (news == News::stop)
                fail("interrupted while connecting");
            if (news == News::message)
                fail("the server refuses: {}",
                     decode(session.in).value("reason", "no reason given"));
            if (now_ns() >= until)
                fail("the other side does not answer");
        }
    } catch (const Failure &) {
        explain();
    }
}

// ---- running a load ------------------------------------------------------------------------

bool all_wait(const Crew &crew) {
    return crew.waiting == crew.workers.size();
}

bool all_have_ended(const Crew &crew) {
    return crew.has_ended();
}

// The server gives up a client that says nothing.
void Client::beat(uint64_t &spoke) {
    if (now_ns() - spoke <= uint64_t{BEAT_MS} * 1000000)
        return;
    ask("alive", "ok");
    spoke = now_ns();
}

// How long to wait for news: not beyond the end of an interval that is to be reported.
static int tick_of(const Options &options, const Progress &progress) {
    const uint64_t end = progress.shown_at + options.limits.interval_ns;
    if (!options.shows_intervals)
        return TICK_MS;
    const uint64_t left = end > progress.now ? (end - progress.now + 999999) / 1000000 : 1;
    return static_cast<int>(std::min<uint64_t>(left, TICK_MS));
}

void Client::show(Progress &progress, bool is_measured) {
    const Plan &plan = session.crew->plan;
    show_progress(plan, progress.operations,
                  static_cast<double>(progress.now - progress.began) / 1e9);
    if (!is_measured || !options.shows_intervals ||
        progress.now - progress.shown_at < options.limits.interval_ns)
        return;
    report->add_interval(plan, progress.shown_at - progress.began,
                         progress.now - progress.began, progress.operations - progress.shown);
    progress.shown_at = progress.now;
    progress.shown = progress.operations;
}

// Waits until the workers have reached the given state.
void Client::watch(bool (*is_reached)(const Crew &crew), bool is_measured) {
    const Crew &crew = *session.crew;
    Progress progress;
    progress.shown = progress.operations = crew.progress();
    uint64_t spoke = progress.began;
    while (!is_reached(crew)) {
        const News news = wait(tick_of(options, progress));
        if (crew.recording)
            crew.recording->write();
        const uint64_t operations = crew.progress();
        progress.now = now_ns();
        crew.check();
        if (news == News::stop)
            fail("interrupted");
        if (news == News::message)
            fail("the server speaks without being asked");
        if (!is_measured && !is_reached(crew) &&
            std::ranges::any_of(crew.workers,
                                [](const Worker &w) { return bool(w.has_ended); }))
            fail("a thread ended early");
        if (progress.operations != operations)
            progress.moved = progress.now;
        progress.operations = operations;
        beat(spoke);
        if (progress.now - progress.moved > uint64_t{PATIENCE_MS} * 1000000)
            fail("no operation completed for {} s", PATIENCE_MS / 1000);
        show(progress, is_measured);
    }
    crew.check();
}

Result Client::collect() const {
    const Crew &crew = *session.crew;
    Result result{.operation = crew.plan.operation,
                  .size = crew.plan.size,
                  .interval_ns = crew.limits.interval_ns};
    uint64_t first = UINT64_MAX, last = 0;
    for (const Worker &worker : crew.workers) {
        result.latency.merge(worker.histogram);
        result.intervals.resize(std::max(result.intervals.size(), worker.intervals.size()));
        for (size_t i = 0; i < worker.intervals.size(); i++)
            result.intervals[i].merge(worker.intervals[i]);
        first = std::min(worker.began_at, first);
        last = std::max(worker.ended_at, last);
    }
    result.operations = result.latency.count;
    result.seconds = static_cast<double>(last - first) / 1e9;
    result.is_verified = crew.plan.verify;
    return result;
}

Result Client::run_load() {
    Crew &crew = *session.crew;
    crew.start(::run_load);
    watch(all_wait, false);
    ask("measure", "ok");
    const uint64_t cpu_before = cpu_ns();
    crew.open_gate();
    watch(all_have_ended, true);
    const uint64_t cpu = cpu_ns() - cpu_before;
    crew.stop();
    Result result = collect();
    result.client_cpu_ns = cpu;
    std::vector<uint64_t> done;
    for (const Lane &lane : crew.lanes)
        done.push_back(lane.done);
    session.control.send(message("stop", {{"done", done}}));
    const Json answer = await("result");
    result.server_cpu_ns = answer["cpu_ns"];
    result.server_operations = answer["operations"];
    result.server_ns = answer["ns"];
    return result;
}

// Completes the ledger. Its load is meant to end with the loss of the server.
void Client::end_ledger(const char *failure) {
    Crew &crew = *session.crew;
    crew.stop();
    const bool is_lost = failure && !is_stopping() && !crew.recording->has_failed;
    const uint64_t records = crew.recording->end();
    if (is_lost && !records)
        throw;
    clear_progress();
    fmt::print("{} records recorded in {}{}{}\n", records, options.ledger,
               is_lost ? " until the server was lost: " : "", is_lost ? failure : "");
    fflush(stdout);
    if (failure && !is_lost)
        throw;
}

void Client::run_plan(const Plan &plan) {
    std::optional<Result> result;
    try {
        make_crew(plan);
        session.control.send(message_of(plan, plan.both ? session.crew->target(false) : ""));
        prepare_lanes(await("ready"));
        ask("begin", "ok");
        if (!options.ledger.empty())
            session.crew->recording =
                std::make_unique<Recording>(*session.crew, options.ledger);
        result = run_load();
    } catch (const std::exception &failure) {
        if (!session.crew || !session.crew->recording)
            throw;
        end_ledger(failure.what());
    }
    if (result && session.crew->recording)
        end_ledger(nullptr);
    if (result)
        report->add(*result);
    if (result && !options.plot.empty())
        plotted.push_back(*std::move(result));
    session.crew.reset();
}

void Client::run() {
    connect();
    const auto kept = allowed_operations();
    if (!options.plot.empty())
        picture.open(options.plot);
    if (!picture)
        fail("cannot write {}: {}", options.plot, strerror(errno));
    report = begin_report(options, self, server);
    for (const uint64_t operation : kept)
        for (const Plan &plan : options.plans(operation))
            run_plan(plan);
    if (picture.is_open() && !(picture << plot(plotted) << std::flush))
        fail("cannot write {}", options.plot);
    report->end();
}

} // namespace

int run_client(const Options &options) {
    Client(options).run();
    return EXIT_SUCCESS;
}
