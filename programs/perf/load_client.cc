// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load_client.cc -- the client's side of a load: posts operations and measures their latency

#include "load_client.hh"

#include "load_connection.hh"

#include <algorithm>

// Adds the operation to the interval of its completion, at most to the last interval.
static void add_to_interval(Worker &worker, uint64_t now, uint64_t latency) {
    const uint64_t length = worker.generator->limits.interval_ns;
    if (!length || !worker.began_at)
        return;
    const size_t index = std::min((now - worker.began_at) / length, INTERVALS_MAX - 1);
    if (worker.intervals.size() <= index)
        worker.intervals.resize(index + 1);
    worker.intervals[index].add(latency);
}

static void complete_request(Connection &connection, uint64_t now, uint64_t latency) {
    Worker &worker = *connection.worker;
    worker.histogram.add(latency);
    add_to_interval(worker, now, latency);
    worker.first_at = worker.first_at ? worker.first_at : now;
    worker.last_at = now;
    connection.done++;
    connection.worker->outstanding--;
    connection.worker->progress.fetch_add(1, std::memory_order_relaxed);
}

static void complete_request(Connection &connection, uint64_t now) {
    if (connection.done == connection.posted)
        fail("the server returned a message that was not sent to it");
    complete_request(
        connection, now,
        now - connection.started[connection.done % connection.generator->plan.depth]);
}

// Handles a received message: the echo of the oldest message, or a credit for more sends.
static void handle_receive(Connection &connection, uint64_t now) {
    const LoadGenerator &generator = *connection.generator;
    if (!generator.operation.is_echoed) {
        connection.allowed += generator.plan.receives() / 2;
    } else {
        if (generator.plan.verify)
            check_reply(connection);
        complete_request(connection, now);
    }
    post_receive(connection, connection.replies++);
}

static void handle_client_completion(Connection &connection, const ibv_wc &wc, uint64_t now) {
    const LoadGenerator &generator = *connection.generator;
    if (wc.opcode & IBV_WC_RECV)
        return handle_receive(connection, now);
    if (generator.operation.is_echoed) {
        connection.outstanding_sends -= generator.plan.signal_every();
        return;
    }
    if (generator.operation.fetches() && generator.plan.verify)
        check_fetched(connection);
    complete_request(connection, now);
}

static bool can_post(const Connection &connection) {
    const Plan &plan = connection.generator->plan;
    if (connection.posted - connection.done + plan.batch > plan.depth)
        return false;
    if (!connection.generator->operation.is_message)
        return true;
    if (connection.generator->operation.is_echoed)
        return connection.outstanding_sends + plan.batch <= plan.sends();
    return connection.posted + plan.batch <= connection.allowed;
}

// Posts all operations that are due and for which the queue has space.
static void post_due(Connection &connection, uint64_t until) {
    const LoadGenerator &generator = *connection.generator;
    while (!connection.is_finished && can_post(connection) &&
           (!connection.due || connection.due <= now_ns())) {
        post(connection);
        connection.worker->outstanding += generator.plan.batch;
        connection.is_finished =
            connection.limit
                ? connection.posted >= connection.limit
                : connection.started[(connection.posted - 1) % generator.plan.depth] >= until;
    }
}

// ---- connections ---------------------------------------------------------------------------

static void begin_connection(Connection &connection, const Epoll &epoll, uint64_t until) {
    const uint64_t now = now_ns();
    if (connection.limit ? connection.posted >= connection.limit : now >= until)
        return;
    connection.started.assign(1, now);
    start(connection);
    epoll.add(connection.link.fd, connection.index);
    connection.posted++;
    connection.worker->outstanding++;
}

// Disconnects each established connection, and reconnects once it is down.
static void run_connections(Worker &worker, uint64_t until) {
    const Epoll epoll;
    std::array<epoll_event, 32> events;
    worker.for_each_connection(
        [&](Connection &connection) { begin_connection(connection, epoll, until); });
    while (worker.outstanding) {
        worker.check_stop();
        const int found = epoll_wait(epoll.fd, events.data(), static_cast<int>(events.size()),
                                     worker.generator->plan.poll ? 0 : -1);
        for (int i = 0; i < found; i++) {
            Connection &connection =
                worker.generator->connections[events[static_cast<size_t>(i)].data.u64];
            const auto step = advance(connection);
            const uint64_t now = now_ns();
            if (step == CmLink::Step::established) {
                connection.connect_ns = now - connection.started[0];
                attempt("cannot disconnect", [&] { connection.link.conn.disconnect(); });
            } else if (step == CmLink::Step::ended) {
                complete_request(connection, now, connection.connect_ns);
                connection.link = CmLink(); // closes its descriptor
                begin_connection(connection, epoll, until);
            }
        }
    }
}

// ---- phases --------------------------------------------------------------------------------

// Posts until the count or the time is reached, and waits for the completions of all
// operations.
static void run(Worker &worker, uint64_t count, uint64_t until) {
    const uint64_t now = now_ns();
    worker.histogram = {};
    worker.first_at = worker.last_at = 0;
    const uint64_t rate =
        worker.began_at ? worker.generator->plan.rate : 0; // the warm-up has no rate
    worker.for_each_connection([=](Connection &connection) {
        connection.limit = count ? connection.posted + count : 0;
        connection.is_finished = false;
        connection.due = rate ? now + connection.index * 1000000000 / rate : 0;
    });
    if (worker.generator->operation.is_connect())
        return run_connections(worker, until);
    for (;;) {
        worker.check_stop();
        bool is_open = false;      // a connection has more operations to post
        uint64_t due = UINT64_MAX; // when the next operation of a connection with space is due
        worker.for_each_connection([&](Connection &connection) {
            post_due(connection, until);
            is_open |= !connection.is_finished;
            if (connection.due && !connection.is_finished && can_post(connection))
                due = std::min(due, connection.due);
        });
        const int taken = worker.take(handle_client_completion);
        if (!is_open && !worker.outstanding)
            return;
        // If no operation is outstanding, only completions of sends in cq remain.
        if (!taken)
            worker.wait(worker.rcq && worker.outstanding ? *worker.rcq : *worker.cq, due);
    }
}

// All written data must have arrived before the server checks it.
static void flush_connections(Worker &worker) {
    worker.for_each_connection([&](Connection &connection) {
        post_flush(connection);
        worker.outstanding++;
    });
    while (worker.outstanding)
        if (!worker.take([&](Connection &, const ibv_wc &, uint64_t) { worker.outstanding--; }))
            worker.wait(*worker.cq);
}

void run_load(Worker &worker) {
    LoadGenerator &generator = *worker.generator;
    if (generator.limits.warmup)
        run(worker, generator.limits.warmup, 0);
    generator.wait_at_gate(worker);
    worker.began_at = generator.began_at ? generator.began_at : now_ns();
    run(worker, generator.limits.count, worker.began_at + generator.limits.duration_ns);
    worker.ended_at = now_ns();
    if (generator.plan.verify && !generator.operation.is_message &&
        !generator.operation.fetches())
        flush_connections(worker);
}
