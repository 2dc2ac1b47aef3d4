// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// measurement.cc -- runs loads one after another and reports the results

#include "event_loop.hh"
#include "load_client.hh"
#include "load_connection.hh"
#include "output_file.hh"
#include "plot.hh"
#include "report.hh"

#include <algorithm>

namespace {

constexpr int RETRY_MS = 100,
              ATTEMPT_MS = 3000; // shorter than the connection manager's own retries

// Progress of a running load.
struct Progress {
    uint64_t began = now_ns();
    uint64_t now = began, operations = 0;
    uint64_t last_progress = began; // time of the last completion
    uint64_t shown_at = began,      // end of the last reported interval
        shown = 0;
};

// Results of a plan so far.
struct Measured {
    Result result{};
    uint64_t since = 0;    // start of the measurement; 0: it has not started
    uint64_t last = 0;     // time of the last completion
    uint64_t broke_at = 0; // time of the loss of the connections; 0: they are established
    bool is_complete = false;
    uint64_t cpu_before = 0;
    std::optional<Progress> progress{};
};

class Client {
  public:
    explicit Client(const Options &parsed);
    void run();

  private:
    Event wait(int milliseconds);
    void advance(Connection &connection);
    Json await(std::string_view type);
    Json call(std::string_view type, std::string_view reply);
    void connect(int timeout_ms);
    std::string missing_support(const Operation &operation) const;
    std::vector<uint64_t> allowed_operations() const;
    void run_plan(const Plan &plan);
    void make_generator(const Plan &plan);
    void connect_all(const Json &ready);
    void advance_ignoring_failure(Connection &connection);
    Json await_reason();
    [[noreturn]] void fail_with_reason();
    void do_load(const Plan &plan);
    void run_load();
    void watch(bool (*is_reached)(const LoadGenerator &generator), Progress &progress,
               bool is_measured);
    void keep_alive(uint64_t &last_keepalive);
    void show(Progress &progress, bool is_measured);
    void collect();
    void end_gap(uint64_t at);
    bool reconnect(const std::string &failure);

    const Options &options_;
    Device device_;
    std::optional<EventLoop> loop_; // a new one after each break
    Side self_, server_;
    Measured measured_;
    std::unique_ptr<Report> report_;
    std::optional<OutputFile> picture_;
    std::vector<Result> plotted_;
};

Client::Client(const Options &parsed)
    : options_(parsed), device_(options_.address, RPMA_UTIL_IBV_CONTEXT_REMOTE) {}

// ---- requests to the server -----------------------------------------------------------------

void Client::advance(Connection &connection) {
    LoadGenerator &generator = *loop_->generator;
    const auto step = ::advance(connection);
    if (step == CmLink::Step::ended)
        connection.link.end();
    if (step != CmLink::Step::established)
        return;
    generator.apply_target(connection);
    prepare(connection);
    generator.connected++;
}

// Waits for the first event, and handles it if it is an event of a connection.
Event Client::wait(int milliseconds) {
    const Event event = loop_->wait(milliseconds);
    if (event == Event::connection)
        advance(loop_->generator->connections[loop_->connection]);
    return event;
}

[[noreturn]] void fail_refused(const Json &reply) {
    fail("the server refuses: {}", reply.value("reason", "no reason given"));
}

// Waits for a reply of this type; throws a Failure if the server sends another one.
Json Client::await(std::string_view type) {
    const uint64_t began = now_ns();
    Event event = Event::worker;
    while ((event == Event::worker || event == Event::connection) &&
           !is_past(began, PEER_TIMEOUT_MS))
        event = wait(PEER_TIMEOUT_MS);
    if (event == Event::stop)
        fail("interrupted");
    if (event != Event::message)
        fail("the server does not reply");
    Json reply = decode(loop_->in);
    if (reply["word"] != type)
        fail_refused(reply);
    return reply;
}

Json Client::call(std::string_view type, std::string_view reply) {
    loop_->control.send(message(type));
    return await(reply);
}

// The private data of the connection identifies a server of rpma-perf and its protocol.
void check_greeting(const Greeting &greeting, const Options &options) {
    if (!greeting.is_ours)
        fail("{} port {} is not rpma-perf", escaped(options.address), options.port);
    if (greeting.protocol != PROTOCOL)
        fail("the server uses version {} of the protocol, this client version {}: use the "
             "same rpma-perf on both sides",
             greeting.protocol, PROTOCOL);
}

void Client::connect(int timeout_ms) {
    const uint64_t began = now_ns();
    loop_.emplace(device_.peer);
    CmLink &link = loop_->control.link;
    link.start(device_.peer, options_.address, options_.port);
    loop_->watch_control();
    while (!link.is_established) {
        if (loop_->wait(TICK_MS) == Event::stop)
            fail("interrupted while connecting");
        if (is_past(began, timeout_ms))
            fail("the other side does not reply");
    }
    check_greeting(greeting_of(link.conn.get_private_data()), options_);
    // The client sends first, because on iWARP the server must not.
    const Json hello = call("hello", "welcome");
    self_ = describe_side(device_.name, "dram");
    server_ = {hello["librpma"], hello["kernel"],       hello["device"],
               hello["memory"],  hello["direct_write"], hello["atomics"]};
}

// Returns why the two sides cannot measure the operation, or "". A persistent flush is measured
// only if the server's operator stated direct write to PMem.
std::string Client::missing_support(const Operation &operation) const {
    if (operation.is_persistent() && !server_.direct_write)
        return "the server states no direct write to persistent memory: start it with --memory "
               "and --direct-write if its platform has it (see rpma-perf(1))";
    const bool is_here = !device_.has_atomics();
    if (operation.is_fetching() && (is_here || !server_.has_atomics))
        return fmt::format("the device {} of the {} has no remote atomics",
                           is_here ? self_.device : server_.device,
                           is_here ? "client" : "server");
    return "";
}

std::vector<uint64_t> Client::allowed_operations() const {
    std::vector<uint64_t> allowed;
    for (const uint64_t operation : options_.operations) {
        const std::string why = missing_support(operations[operation]);
        if (why.empty()) {
            allowed.push_back(operation);
            continue;
        }
        if (!options_.includes_all)
            fail("{}: {}", operations[operation].name, why);
        print_error(fmt::format("{} is skipped: {}", operations[operation].name, why));
    }
    return allowed;
}

// ---- preparing a load ----------------------------------------------------------------------

void Client::make_generator(const Plan &plan) {
    int usage = RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_SEND |
                RPMA_MR_USAGE_RECV;
    if (plan.both)
        usage |= RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_READ_SRC |
                 RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                 (plan.op().is_fetching() ? RPMA_MR_USAGE_ATOMIC : 0);
    loop_->begin(std::make_unique<LoadGenerator>(
        plan, device_.peer, connection_queues(plan),
        Mapping::allocate(std::max(
            connection_memory_offset(plan) + plan.connections * connection_memory_size(plan),
            PLACE_ALIGNMENT)), // "connect" uses no memory, but a region cannot be empty
        std::span<char>(), usage));
    loop_->generator->address = options_.address;
    loop_->generator->port = options_.port;
    loop_->generator->limits = options_.limits;
    if (measured_.since)
        loop_->generator->limits.warmup = 0;
    if (plan.both) // on iWARP the server must not send first
        loop_->generator->limits.warmup = std::max(options_.limits.warmup, UINT64_C(1));
}

// Advances a connection after another one failed; only the first failure is reported.
void Client::advance_ignoring_failure(Connection &connection) {
    try {
        advance(connection);
    } catch (const Failure &) {
    }
}

// The server's reason for a failure, if it arrives soon.
Json Client::await_reason() {
    try {
        Event event = Event::connection;
        while ((event = loop_->wait(TICK_MS)) == Event::connection)
            advance_ignoring_failure(loop_->generator->connections[loop_->connection]);
        return event == Event::message ? decode(loop_->in) : Json();
    } catch (const Failure &) {
        return {};
    }
}

// Called in an exception handler: throws the reason if the server sends one, or rethrows.
void Client::fail_with_reason() {
    if (const Json reply = await_reason(); reply.contains("reason"))
        fail_refused(reply);
    throw;
}

// Establishes all connections concurrently.
void Client::connect_all(const Json &ready) {
    uint64_t last_progress = now_ns(); // time of the last established connection
    LoadGenerator &generator = *loop_->generator;
    generator.take_target(ready["target"]);
    generator.session = ready["session"];
    if (generator.operation.is_connect()) // the workers establish them
        return;
    try {
        for (Connection &connection : generator.connections) {
            start(connection);
            loop_->watch(connection);
        }
        while (generator.connected < generator.connections.size()) {
            const uint64_t before = generator.connected;
            const Event event = wait(TICK_MS);
            last_progress = generator.connected == before ? last_progress : now_ns();
            if (event == Event::stop)
                fail("interrupted while connecting");
            if (event == Event::message)
                fail_refused(decode(loop_->in));
            if (is_past(last_progress, PEER_TIMEOUT_MS))
                fail("the other side does not reply");
        }
    } catch (const Failure &) {
        fail_with_reason();
    }
}

// ---- running a load ------------------------------------------------------------------------

bool all_wait(const LoadGenerator &generator) {
    return generator.waiting == generator.workers.size();
}

bool all_have_ended(const LoadGenerator &generator) {
    return generator.has_ended();
}

// Sends a keepalive: the server disconnects a client that sends nothing.
void Client::keep_alive(uint64_t &last_keepalive) {
    if (!is_past(last_keepalive, KEEPALIVE_MS))
        return;
    call("alive", "ok");
    last_keepalive = now_ns();
}

// The timeout of a wait for an event: at most until the next interval ends.
static int wait_time_ms(const Options &options, const Progress &progress) {
    const uint64_t end = progress.shown_at + options.limits.interval_ns;
    if (!options.shows_intervals)
        return TICK_MS;
    const uint64_t left = end > progress.now ? (end - progress.now + 999999) / 1000000 : 1;
    return static_cast<int>(std::min<uint64_t>(left, TICK_MS));
}

void Client::show(Progress &progress, bool is_measured) {
    const Plan &plan = loop_->generator->plan;
    show_progress(plan, progress.operations,
                  static_cast<double>(progress.now - progress.began) / 1e9);
    if (!is_measured || !options_.shows_intervals ||
        progress.now - progress.shown_at < options_.limits.interval_ns)
        return;
    report_->add_interval(plan, progress.shown_at - progress.began,
                          progress.now - progress.began, progress.operations - progress.shown);
    progress.shown_at = progress.now;
    progress.shown = progress.operations;
}

// Waits until the workers have reached the given state.
void Client::watch(bool (*is_reached)(const LoadGenerator &generator), Progress &progress,
                   bool is_measured) {
    const LoadGenerator &generator = *loop_->generator;
    const uint64_t before =
        progress.operations - generator.progress(); // operations of earlier generators
    uint64_t last_keepalive = progress.last_progress = progress.now = now_ns();
    while (!is_reached(generator)) {
        const Event event = wait(wait_time_ms(options_, progress));
        const uint64_t operations = before + generator.progress();
        progress.now = now_ns();
        generator.check();
        if (event == Event::stop)
            fail("interrupted");
        if (event == Event::message)
            fail("unexpected message from the server");
        if (progress.operations != operations)
            progress.last_progress = progress.now;
        progress.operations = operations;
        if (is_past(progress.last_progress, PEER_TIMEOUT_MS))
            fail("no operation completed for {} s", PEER_TIMEOUT_MS / 1000);
        keep_alive(last_keepalive);
        show(progress, is_measured);
    }
    generator.check();
}

// Adds the measurements of the workers, which have stopped.
void Client::collect() {
    const LoadGenerator &generator = *loop_->generator;
    Result &result = measured_.result;
    uint64_t first = UINT64_MAX, last = 0, ended = 0;
    for (const Worker &worker : generator.workers) {
        if (!worker.first_at)
            continue;
        result.latency.merge(worker.histogram);
        result.intervals.resize(std::max(result.intervals.size(), worker.intervals.size()));
        for (size_t i = 0; i < worker.intervals.size(); i++)
            result.intervals[i].merge(worker.intervals[i]);
        first = std::min(worker.first_at, first);
        last = std::max(worker.last_at, last);
        ended = std::max(worker.ended_at, ended);
    }
    result.served = result.latency.count - result.operations; // since the last break
    result.operations = result.latency.count;
    result.seconds = static_cast<double>(ended - measured_.since) / 1e9;
    if (last && measured_.broke_at)
        end_gap(first);
    measured_.last = std::max(measured_.last, last);
}

void Client::end_gap(uint64_t at) {
    measured_.result.gaps.push_back(
        {measured_.broke_at - measured_.since, at - std::min(measured_.broke_at, at)});
    measured_.broke_at = 0;
}

void Client::run_load() {
    LoadGenerator &generator = *loop_->generator;
    Progress progress;
    generator.start(::run_load);
    watch(all_wait, progress, false);
    call("measure", "ok");
    const uint64_t cpu_before = cpu_ns();
    if (!measured_.since) {
        measured_.since = measured_.last = now_ns();
        measured_.cpu_before = cpu_before;
        measured_.progress.emplace();
    }
    generator.began_at = measured_.since;
    generator.open_gate();
    watch(all_have_ended, *measured_.progress, true);
    measured_.result.client_cpu_ns = cpu_ns() - measured_.cpu_before;
    generator.stop();
    collect();
    measured_.is_complete = true;
    std::vector<uint64_t> done;
    for (const Connection &connection : generator.connections)
        done.push_back(connection.done);
    loop_->control.send(message("stop", {{"done", done}}));
    const Json reply = await("result");
    measured_.result.server_cpu_ns = reply["cpu_ns"];
    measured_.result.server_operations = reply["operations"];
    measured_.result.server_ns = reply["ns"];
}

// Called in an exception handler: reconnects after a break. Returns false if the measurement
// has ended meanwhile.
bool Client::reconnect(const std::string &failure) {
    const uint64_t end = measured_.since + options_.limits.duration_ns;
    if (!options_.reconnect || !measured_.since || is_stopping())
        throw;
    if (loop_->generator && !measured_.is_complete) {
        loop_->generator->stop();
        collect();
    }
    bool is_new = !measured_.broke_at;
    if (is_new)
        measured_.broke_at = measured_.last;
    for (std::string why = failure;; is_new = false) {
        loop_.reset();
        if (measured_.is_complete)
            return false;
        if (!is_new) {
            const Epoll no_events;
            std::array<epoll_event, 1> events;
            (void)wait_for(no_events, events, RETRY_MS);
        }
        if (now_ns() >= end) {
            measured_.result.seconds = static_cast<double>(end - measured_.since) / 1e9;
            measured_.result.client_cpu_ns = cpu_ns() - measured_.cpu_before;
            end_gap(end);
            return false;
        }
        if (is_stopping())
            fail("interrupted");
        if (is_past(measured_.broke_at, PEER_TIMEOUT_MS))
            fail("no operation completed for {} s: {}", PEER_TIMEOUT_MS / 1000, why);
        try {
            connect(ATTEMPT_MS);
            return true;
        } catch (const Failure &again) {
            why = again.what();
        }
    }
}

// Runs a plan and returns its result.
void Client::do_load(const Plan &plan) {
    make_generator(plan);
    loop_->control.send(plan_message(plan, plan.both ? loop_->generator->target(false) : ""));
    connect_all(await("ready"));
    call("begin", "ok");
    run_load();
}

void Client::run_plan(const Plan &plan) {
    if (!loop_) // the previous session ended in a gap
        connect(PEER_TIMEOUT_MS);
    measured_ = {};
    measured_.result.operation = plan.operation;
    measured_.result.size = plan.size;
    measured_.result.interval_ns = options_.limits.interval_ns;
    measured_.result.is_verified = plan.verify;
    for (bool is_due = true; is_due;)
        try {
            do_load(plan);
            is_due = false;
        } catch (const std::exception &failure) {
            is_due = reconnect(failure.what());
        }
    report_->add(measured_.result);
    if (!options_.plot.empty())
        plotted_.push_back(std::move(measured_.result));
    if (loop_)
        loop_->generator.reset();
}

void Client::run() {
    connect(PEER_TIMEOUT_MS);
    const auto allowed = allowed_operations();
    if (!options_.plot.empty())
        picture_.emplace(options_.plot);
    report_ = begin_report(options_, self_, server_);
    for (const uint64_t operation : allowed)
        for (const Plan &plan : options_.plans(operation))
            run_plan(plan);
    if (picture_)
        picture_->write(plot(plotted_));
    report_->end();
}

} // namespace

int run_client(const Options &options) {
    Client(options).run();
    return EXIT_SUCCESS;
}
