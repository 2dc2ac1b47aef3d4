// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load.c -- the client's side of a load: posts operations and measures their latency

#include "load.h"

#include "failure.h"
#include "lane.h"
#include "recording.h"
#include "waiting.h"

static bool complete(struct lane *lane, uint64_t now) {
    const struct plan *plan = &lane->crew->plan;
    if (lane->done == lane->posted)
        return fail("the server returned a message that it was not sent");
    histogram_add(&lane->worker->histogram, now - lane->started[lane->done % plan->depth]);
    lane->done++;
    atomic_store_explicit(&lane->completed, lane->done, memory_order_release);
    lane->worker->under_way--;
    atomic_fetch_add_explicit(&lane->worker->progress, 1, memory_order_relaxed);
    return true;
}

// Handles a message of the server: the echo of the oldest message, or a credit for more sends.
static bool handle_receive(struct lane *lane, uint64_t now) {
    const struct plan *plan = &lane->crew->plan;
    bool is_echoed = lane->crew->operation->is_echoed;
    if (is_echoed && plan->verify && !lane_check_reply(lane))
        return false;
    if (!is_echoed)
        lane->allowed += plan_receives(plan) / 2;
    else if (!complete(lane, now))
        return false;
    return lane_post_receive(lane, lane->replies++);
}

static bool handle(struct lane *lane, const struct ibv_wc *wc, uint64_t now) {
    const struct plan *plan = &lane->crew->plan;
    if (wc->opcode & IBV_WC_RECV)
        return handle_receive(lane, now);
    if (lane->crew->operation->is_echoed) {
        lane->unretired -= plan_signal_every(plan);
        return true;
    }
    if (lane->crew->operation->is_read && plan->verify && !lane_check_read(lane))
        return false;
    return complete(lane, now);
}

static bool has_room(const struct lane *lane) {
    const struct plan *plan = &lane->crew->plan;
    if (lane->posted - lane->done + plan->batch > plan->depth)
        return false;
    if (!lane->crew->operation->is_message)
        return true;
    if (lane->crew->operation->is_echoed)
        return lane->unretired + plan->batch <= plan_sends(plan);
    return lane->posted + plan->batch <= lane->allowed;
}

// Posts as many operations as the lane has room for.
static bool fill_lane(struct lane *lane, uint64_t until) {
    const struct plan *plan = &lane->crew->plan;
    while (!lane->is_over && has_room(lane)) {
        if (!recording_permits(lane) || !lane_post(lane))
            return false;
        lane->worker->under_way += plan->batch;
        lane->is_over = lane->limit ? lane->posted >= lane->limit
                                    : lane->started[(lane->posted - 1) % plan->depth] >= until;
    }
    return true;
}

// Sets *is_open if a lane has more to post.
static bool fill_lanes(struct worker *worker, uint64_t until, bool *is_open) {
    struct crew *crew = worker->crew;
    *is_open = false;
    for (uint64_t i = worker->first; i < crew->plan.connections; i += crew->plan.threads) {
        if (!fill_lane(&crew->lanes[i], until))
            return false;
        *is_open |= !crew->lanes[i].is_over;
    }
    return true;
}

static void begin(struct worker *worker, uint64_t count) {
    struct crew *crew = worker->crew;
    for (uint64_t i = worker->first; i < crew->plan.connections; i += crew->plan.threads) {
        crew->lanes[i].limit = count ? crew->lanes[i].posted + count : 0;
        crew->lanes[i].is_over = false;
    }
    histogram_reset(&worker->histogram);
}

// Posts until the count or the time is reached, and takes the completions of all operations.
static bool run(struct worker *worker, uint64_t count, uint64_t duration_ns) {
    uint64_t until = now_ns() + duration_ns;
    begin(worker, count);
    for (;;) {
        bool is_open;
        if (crew_is_stopped(worker->crew) || !fill_lanes(worker, until, &is_open))
            return false;
        int taken = worker_take(worker, handle);
        if (taken < 0)
            return false;
        if (!is_open && !worker->under_way)
            return true;
        // With no operation outstanding, only completions of sends are left, in cq.
        struct rpma_cq *cq = worker->rcq && worker->under_way ? worker->rcq : worker->cq;
        if (!taken && !worker_wait(worker, cq))
            return false;
    }
}

static bool handle_flush(struct lane *lane, const struct ibv_wc *wc, uint64_t now) {
    (void)wc;
    (void)now;
    lane->worker->under_way--;
    return true;
}

// Flushes, so that all written data has arrived before the server checks it.
static bool flush_lanes(struct worker *worker) {
    struct crew *crew = worker->crew;
    for (uint64_t i = worker->first; i < crew->plan.connections; i += crew->plan.threads) {
        if (!lane_flush(&crew->lanes[i]))
            return false;
        worker->under_way++;
    }
    while (worker->under_way) {
        int taken = worker_take(worker, handle_flush);
        if (taken < 0 || (!taken && !worker_wait(worker, worker->cq)))
            return false;
    }
    return true;
}

static bool measure(struct worker *worker) {
    const struct crew *crew = worker->crew;
    worker->began_at = now_ns();
    if (!run(worker, crew->limits->count, crew->limits->duration_ns))
        return false;
    worker->ended_at = now_ns();
    return !crew->plan.verify || crew->operation->is_message || crew->operation->is_read ||
           flush_lanes(worker);
}

void *load_run(void *argument) {
    struct worker *worker = argument;
    const struct limits *limits = worker->crew->limits;
    worker->is_done = (!limits->warmup || run(worker, limits->warmup, 0)) &&
                      crew_wait_at_gate(worker->crew) && measure(worker);
    atomic_store(&worker->has_ended, true);
    crew_wake_main(worker->crew);
    return NULL;
}
