// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load_server.cc -- the server's side of a load: receives and echoes messages, and checks the
// data

#include "load_server.hh"

#include "load_connection.hh"
#include "pattern.hh"

#include <algorithm>

static constexpr uint64_t CREDITS_MAX = 8;

static size_t offset_of(const Connection &connection, uint64_t number) {
    return connection.generator->plan.offset_of(connection.index, number);
}

static std::span<char> data_of(const Connection &connection, uint64_t number) {
    return connection.generator->memory.subspan(offset_of(connection, number),
                                                connection.generator->plan.size);
}

Queues serve_queues(const Plan &plan) {
    if (plan.both)
        return connection_queues(plan);
    if (!plan.op().is_message)
        return {1, 1};
    return {plan.op().is_echoed ? plan.sends() : CREDITS_MAX, plan.receives()};
}

void serve_post_receives(Connection &connection) {
    LoadGenerator &generator = *connection.generator;
    for (uint64_t i = 0; generator.operation.is_message && i < generator.plan.receives(); i++)
        require_ok(connection.link.request.recv(generator.mr, offset_of(connection, i),
                                                generator.plan.size, &connection),
                   "cannot post a receive");
}

static void repost_receive(Connection &connection, uint64_t number) {
    require_ok(connection.link.conn.recv(connection.generator->mr,
                                         offset_of(connection, number),
                                         connection.generator->plan.size, &connection),
               "cannot post a receive");
}

static void check_pattern(const Connection &connection, uint64_t place, uint64_t number) {
    const auto data = data_of(connection, place);
    if (const size_t wrong = pattern_check(data, connection.index, number);
        wrong != data.size())
        fail("verification failed: connection {}, operation {}: byte {} of {} is wrong in the "
             "server's memory",
             connection.index, number, wrong, data.size());
}

static void echo(Connection &connection, uint64_t number) {
    const Plan &plan = connection.generator->plan;
    int flags = ++connection.sent % plan.signal_every() ? RPMA_F_COMPLETION_ON_ERROR
                                                        : RPMA_F_COMPLETION_ALWAYS;
    if (plan.size <= plan.inline_size)
        flags |= RPMA_F_INLINE;
    repost_receive(connection, number + plan.depth);
    require_ok(connection.link.conn.send(connection.generator->mr,
                                         offset_of(connection, number), plan.size, flags,
                                         &connection),
               "cannot send an echo");
}

// Sends the client a credit for more messages once half of the receives are reposted.
static void send_credit(Connection &connection) {
    if (++connection.consumed < connection.generator->plan.receives() / 2)
        return;
    connection.consumed = 0;
    require_ok(connection.link.conn.send(connection.generator->mr, 0, CREDIT_SIZE,
                                         RPMA_F_COMPLETION_ALWAYS, &connection),
               "cannot send a credit");
}

static void handle_server_completion(Connection &connection, const ibv_wc &wc, uint64_t) {
    const Plan &plan = connection.generator->plan;
    if (!(wc.opcode & IBV_WC_RECV))
        return; // the completion of an echo or a credit
    const uint64_t number = connection.received.load(std::memory_order_relaxed);
    if (wc.byte_len != plan.size)
        fail("a message has {} bytes, not {}", wc.byte_len, plan.size);
    if (plan.verify)
        check_pattern(connection, number, number);
    connection.received.store(number + 1, std::memory_order_relaxed);
    if (connection.generator->operation.is_echoed)
        return echo(connection, number);
    repost_receive(connection, number);
    send_credit(connection);
}

void run_serve(Worker &worker) {
    for (;;) {
        worker.check_stop();
        if (!worker.take(handle_server_completion))
            worker.wait(worker.rcq ? *worker.rcq : *worker.cq);
    }
}

void serve_fill(LoadGenerator &generator) {
    std::ranges::fill(generator.memory, '\0');
    for (const Connection &connection : generator.connections)
        for (uint64_t place = 0; generator.operation.is_read() && place < generator.plan.depth;
             place++)
            pattern_fill(data_of(connection, place), connection.index, place);
}

bool serve_received_all(const LoadGenerator &generator, const std::vector<uint64_t> &counts) {
    return !generator.operation.is_message ||
           std::ranges::all_of(generator.connections, [&](const Connection &connection) {
               return connection.received >= counts[connection.index];
           });
}

// Atomics have counted the operations in the memory itself.
static void check_counter(const Connection &connection, uint64_t place, uint64_t times) {
    uint64_t found;
    std::memcpy(&found, data_of(connection, place).data(), sizeof(found));
    if (found != times)
        fail("verification failed: connection {}, place {}: it is {} after {} operations",
             connection.index, place, found, times);
}

// Each place must have the data of the last operation on it.
static void check_places(const Connection &connection, uint64_t count) {
    const Plan &plan = connection.generator->plan;
    for (uint64_t place = 0; place < plan.depth; place++) {
        const uint64_t times = plan.times(place, count);
        if (plan.op().is_fetching())
            check_counter(connection, place, times);
        else if (times)
            check_pattern(connection, place, place + (times - 1) * plan.depth);
        else if (std::ranges::any_of(data_of(connection, place),
                                     [](char byte) { return byte != 0; }))
            fail("verification failed: connection {} wrote outside its places",
                 connection.index);
    }
}

void serve_check(LoadGenerator &generator, const std::vector<uint64_t> &counts) {
    for (const Connection &connection : generator.connections)
        if (generator.operation.is_message && connection.received != counts[connection.index])
            fail("verification failed: connection {}: {} of {} messages arrived",
                 connection.index, connection.received.load(), counts[connection.index]);
        else if (!generator.operation.is_message && !generator.operation.is_read())
            check_places(connection, counts[connection.index]);
}
