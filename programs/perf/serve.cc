// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// serve.cc -- the server's side of a load: receives and echoes messages, and checks the data

#include "serve.hh"

#include "lane.hh"
#include "pattern.hh"

#include <algorithm>

static constexpr size_t CREDIT_SIZE = 8;
static constexpr uint64_t CREDITS_UNDER_WAY = 8;

static size_t place_of(const Lane &lane, uint64_t number) {
    return lane.crew->plan.place(lane.index, number);
}

static std::span<char> data_of(const Lane &lane, uint64_t number) {
    return lane.crew->memory.subspan(place_of(lane, number), lane.crew->plan.size);
}

Queues serve_queues(const Plan &plan) {
    if (plan.both)
        return lane_queues(plan);
    if (!plan.op().is_message)
        return {1, 1};
    return {plan.op().is_echoed ? plan.sends() : CREDITS_UNDER_WAY, plan.receives()};
}

void serve_post_receives(Lane &lane) {
    Crew &crew = *lane.crew;
    for (uint64_t i = 0; crew.operation.is_message && i < crew.plan.receives(); i++)
        must(lane.link.request.recv(crew.mr, place_of(lane, i), crew.plan.size, &lane),
             "cannot post a receive");
}

static void repost_receive(Lane &lane, uint64_t number) {
    must(
        lane.link.conn.recv(lane.crew->mr, place_of(lane, number), lane.crew->plan.size, &lane),
        "cannot post a receive");
}

static void check_data(const Lane &lane, uint64_t place, uint64_t number) {
    const auto data = data_of(lane, place);
    if (const size_t wrong = pattern_check(data, lane.index, number); wrong != data.size())
        fail("verification failed: connection {}, operation {}: byte {} of {} is wrong in the "
             "server's memory",
             lane.index, number, wrong, data.size());
}

static void echo(Lane &lane, uint64_t number) {
    const Plan &plan = lane.crew->plan;
    int flags = ++lane.sent % plan.signal_every() ? RPMA_F_COMPLETION_ON_ERROR
                                                  : RPMA_F_COMPLETION_ALWAYS;
    if (plan.size <= plan.inline_size)
        flags |= RPMA_F_INLINE;
    repost_receive(lane, number + plan.depth);
    must(lane.link.conn.send(lane.crew->mr, place_of(lane, number), plan.size, flags, &lane),
         "cannot send an echo");
}

// Allows the client to send more messages once half of the receives are posted again.
static void give_credit(Lane &lane) {
    if (++lane.consumed < lane.crew->plan.receives() / 2)
        return;
    lane.consumed = 0;
    must(lane.link.conn.send(lane.crew->mr, 0, CREDIT_SIZE, RPMA_F_COMPLETION_ALWAYS, &lane),
         "cannot send a credit");
}

static void handle(Lane &lane, const ibv_wc &wc, uint64_t) {
    const Plan &plan = lane.crew->plan;
    if (!(wc.opcode & IBV_WC_RECV))
        return; // the completion of an echo or a credit
    const uint64_t number = lane.received.load(std::memory_order_relaxed);
    if (wc.byte_len != plan.size)
        fail("a message has {} bytes, not {}", wc.byte_len, plan.size);
    if (plan.verify)
        check_data(lane, number, number);
    lane.received.store(number + 1, std::memory_order_relaxed);
    if (lane.crew->operation.is_echoed)
        return echo(lane, number);
    repost_receive(lane, number);
    give_credit(lane);
}

void run_serve(Worker &worker) {
    for (;;) {
        worker.check_stop();
        if (!worker.take(handle))
            worker.wait(worker.rcq ? *worker.rcq : *worker.cq);
    }
}

void serve_fill(Crew &crew) {
    std::ranges::fill(crew.memory, '\0');
    for (const Lane &lane : crew.lanes)
        for (uint64_t place = 0; crew.operation.is_read() && place < crew.plan.depth; place++)
            pattern_fill(data_of(lane, place), lane.index, place);
}

bool serve_has_all(const Crew &crew, const std::vector<uint64_t> &counts) {
    return !crew.operation.is_message || std::ranges::all_of(crew.lanes, [&](const Lane &lane) {
        return lane.received >= counts[lane.index];
    });
}

// Atomics have counted themselves.
static void check_word(const Lane &lane, uint64_t place, uint64_t times) {
    uint64_t found;
    std::memcpy(&found, data_of(lane, place).data(), sizeof(found));
    if (found != times)
        fail("verification failed: connection {}, place {}: it is {} after {} operations",
             lane.index, place, found, times);
}

// Each place must have the data of the last operation on it.
static void check_places(const Lane &lane, uint64_t count) {
    const Plan &plan = lane.crew->plan;
    for (uint64_t place = 0; place < plan.depth; place++) {
        const uint64_t times = plan.times(place, count);
        if (plan.op().is_fetching())
            check_word(lane, place, times);
        else if (times)
            check_data(lane, place, place + (times - 1) * plan.depth);
        else if (std::ranges::any_of(data_of(lane, place), [](char byte) { return byte != 0; }))
            fail("verification failed: connection {} wrote where it had nothing to write",
                 lane.index);
    }
}

void serve_check(Crew &crew, const std::vector<uint64_t> &counts) {
    for (const Lane &lane : crew.lanes)
        if (crew.operation.is_message && lane.received != counts[lane.index])
            fail("verification failed: connection {}: {} of {} messages arrived", lane.index,
                 lane.received.load(), counts[lane.index]);
        else if (!crew.operation.is_message && !crew.operation.is_read())
            check_places(lane, counts[lane.index]);
}
