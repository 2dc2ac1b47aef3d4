// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load.cc -- the client's side of a load: posts operations and measures their latency

#include "load.hh"

#include "lane.hh"
#include "recording.hh"

#include <algorithm>

// Adds to the interval in which the operation completed, and to the last one what comes later.
static void note_interval(Worker &worker, uint64_t now, uint64_t latency) {
    const uint64_t length = worker.crew->limits.interval_ns;
    if (!length || !worker.began_at)
        return;
    const size_t place = std::min((now - worker.began_at) / length, INTERVALS_MAX - 1);
    if (worker.intervals.size() <= place)
        worker.intervals.resize(place + 1);
    worker.intervals[place].add(latency);
}

static void complete(Lane &lane, uint64_t now, uint64_t latency) {
    Worker &worker = *lane.worker;
    worker.histogram.add(latency);
    note_interval(worker, now, latency);
    worker.first_at = worker.first_at ? worker.first_at : now;
    worker.last_at = now;
    lane.done++;
    lane.completed.store(lane.done, std::memory_order_release);
    lane.worker->under_way--;
    lane.worker->progress.fetch_add(1, std::memory_order_relaxed);
}

static void complete(Lane &lane, uint64_t now) {
    if (lane.done == lane.posted)
        fail("the server returned a message that it was not sent");
    complete(lane, now, now - lane.started[lane.done % lane.crew->plan.depth]);
}

// Handles a message of the server: the echo of the oldest message, or a credit for more sends.
static void handle_receive(Lane &lane, uint64_t now) {
    const Crew &crew = *lane.crew;
    if (!crew.operation.is_echoed) {
        lane.allowed += crew.plan.receives() / 2;
    } else {
        if (crew.plan.verify)
            check_reply(lane);
        complete(lane, now);
    }
    post_receive(lane, lane.replies++);
}

static void handle(Lane &lane, const ibv_wc &wc, uint64_t now) {
    const Crew &crew = *lane.crew;
    if (wc.opcode & IBV_WC_RECV)
        return handle_receive(lane, now);
    if (crew.operation.is_echoed) {
        lane.unretired -= crew.plan.signal_every();
        return;
    }
    if (crew.operation.fetches() && crew.plan.verify)
        check_fetched(lane);
    complete(lane, now);
}

static bool has_room(const Lane &lane) {
    const Plan &plan = lane.crew->plan;
    if (lane.posted - lane.done + plan.batch > plan.depth)
        return false;
    if (!lane.crew->operation.is_message)
        return true;
    if (lane.crew->operation.is_echoed)
        return lane.unretired + plan.batch <= plan.sends();
    return lane.posted + plan.batch <= lane.allowed;
}

// Posts as many operations as the lane has room for.
static void fill_lane(Lane &lane, uint64_t until) {
    const Crew &crew = *lane.crew;
    while (!lane.is_over && has_room(lane) && (!lane.due || lane.due <= now_ns())) {
        if (crew.recording)
            crew.recording->permit(lane);
        post(lane);
        lane.worker->under_way += crew.plan.batch;
        lane.is_over = lane.limit ? lane.posted >= lane.limit
                                  : lane.started[(lane.posted - 1) % crew.plan.depth] >= until;
    }
}

// ---- connections ---------------------------------------------------------------------------

static void begin_connection(Lane &lane, const Epoll &epoll, uint64_t until) {
    const uint64_t now = now_ns();
    if (lane.limit ? lane.posted >= lane.limit : now >= until)
        return;
    lane.started.assign(1, now);
    start(lane);
    epoll.add(lane.link.fd, lane.index);
    lane.posted++;
    lane.worker->under_way++;
}

// Takes down each connection that is up, and makes the next one when it is down.
static void run_connections(Worker &worker, uint64_t until) {
    const Epoll epoll;
    std::array<epoll_event, 32> room;
    worker.each_lane([&](Lane &lane) { begin_connection(lane, epoll, until); });
    while (worker.under_way) {
        worker.check_stop();
        const int found = epoll_wait(epoll.fd, room.data(), static_cast<int>(room.size()),
                                     worker.crew->plan.poll ? 0 : -1);
        for (int i = 0; i < found; i++) {
            Lane &lane = worker.crew->lanes[room[static_cast<size_t>(i)].data.u64];
            const auto step = go_on(lane);
            const uint64_t now = now_ns();
            if (step == Link::Step::established) {
                lane.took = now - lane.started[0];
                attempt("cannot disconnect", [&] { lane.link.conn.disconnect(); });
            } else if (step == Link::Step::ended) {
                complete(lane, now, lane.took);
                lane.link = Link(); // whose descriptor may get more events
                begin_connection(lane, epoll, until);
            }
        }
    }
}

// ---- phases --------------------------------------------------------------------------------

// Posts until the count or the time is reached, and takes the completions of all operations.
static void run(Worker &worker, uint64_t count, uint64_t until) {
    const uint64_t now = now_ns();
    worker.histogram = {};
    worker.first_at = worker.last_at = 0;
    const uint64_t rate = worker.began_at ? worker.crew->plan.rate : 0; // none for the warm-up
    worker.each_lane([=](Lane &lane) {
        lane.limit = count ? lane.posted + count : 0;
        lane.is_over = false;
        lane.due = rate ? now + lane.index * 1000000000 / rate : 0;
    });
    if (worker.crew->operation.is_connect())
        return run_connections(worker, until);
    for (;;) {
        worker.check_stop();
        bool is_open = false;      // a lane has more to post
        uint64_t due = UINT64_MAX; // and the next of them with room then
        worker.each_lane([&](Lane &lane) {
            fill_lane(lane, until);
            is_open |= !lane.is_over;
            if (lane.due && !lane.is_over && has_room(lane))
                due = std::min(due, lane.due);
        });
        const int taken = worker.take(handle);
        if (!is_open && !worker.under_way)
            return;
        // With no operation outstanding, only completions of sends are left, in cq.
        if (!taken)
            worker.wait(worker.rcq && worker.under_way ? *worker.rcq : *worker.cq, due);
    }
}

// Flushes, so that all written data has arrived before the server checks it.
static void flush_lanes(Worker &worker) {
    worker.each_lane([&](Lane &lane) {
        post_flush(lane);
        worker.under_way++;
    });
    while (worker.under_way)
        if (!worker.take([&](Lane &, const ibv_wc &, uint64_t) { worker.under_way--; }))
            worker.wait(*worker.cq);
}

void run_load(Worker &worker) {
    Crew &crew = *worker.crew;
    if (crew.limits.warmup)
        run(worker, crew.limits.warmup, 0);
    crew.wait_at_gate(worker);
    worker.began_at = crew.began_at ? crew.began_at : now_ns();
    run(worker, crew.limits.count, worker.began_at + crew.limits.duration_ns);
    worker.ended_at = now_ns();
    if (crew.plan.verify && !crew.operation.is_message && !crew.operation.fetches())
        flush_lanes(worker);
}
