// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.cc -- serves many connections in one thread, each with a coroutine

#include "exchange.hpp"

#include <cstdio>

static const program program = {
    .example = 16,
    .purpose =
        "Serves connections at once until CONNECTIONS have ended: reads blocks on request.",
    .variant = nullptr,
    .number = "CONNECTIONS",
    .many_servers = false,
    .uses_file = false,
    .direct_write_option = false,
    .new_option = nullptr,
};

// Disconnects when the client has disconnected or is lost, which ends the receive that the
// server awaits.
static task disconnect_after(conn_events &events, rpma::conn &conn) {
    (void)co_await events;
    (void)rpma_conn_disconnect(conn.get());
}

// A client ends only its own connection, whatever it sends. The slot is declared before the
// connection: when it is released, the queue pair was deleted, and the device does not use the
// memory, not even for an operation whose post has failed.
static task serve(resources &side, rpma::conn_req req) {
    const std::shared_ptr<slot> slot = side.memory.take();
    if (!slot) {
        std::puts("server: refused a client: all slots are taken");
        co_return; // deletes the request, which rejects it
    }
    rpma::mr_local &mr = side.memory.mr;
    const std::size_t block = side.memory.offset_of(slot->block);
    const std::size_t request = side.memory.offset_of(&slot->request);
    const std::size_t reply = side.memory.offset_of(&slot->reply);
    unsigned number = 0, blocks = 0;
    try {
        if (!find_number(req.get_private_data(), number))
            throw std::runtime_error("it is not of this example");
        // The client may send as soon as it is connected.
        req.setup(side.cfg);
        rpma::operation requested = side.queue.post(nullptr, [&](const void *context) {
            return req.recv(mr, request, sizeof(slot->request), context);
        });
        const std::array<unsigned char, 1> example = {program.example};
        const rpma::packed offer(std::span<const rpma_mr_local *const>(), nullptr,
                                 std::as_bytes(std::span(example)));
        rpma::conn conn = std::move(req).connect(offer);
        const rpma::received client = rpma::unpack(conn.get_private_data());
        if (client.regions.empty())
            throw std::runtime_error("it offers no memory");
        conn_events events(conn.get_event_fd(), [&] { return conn.next_event(); });
        const event_loop::watch watching(side.loop, events);
        const auto event = co_await events; // gcc 12 miscompiles co_await in a condition
        if (event != RPMA_CONN_ESTABLISHED)
            throw std::runtime_error("the connection was not established");
        const task disconnecting = disconnect_after(events, conn);

        for (;; blocks++) {
            const ibv_wc wc = co_await requested;
            if (wc.status != IBV_WC_SUCCESS)
                break;
            if (wc.byte_len != sizeof(slot->request))
                throw std::runtime_error("its request has the wrong size");
            check_success(co_await side.queue.post(nullptr, [&](const void *context) {
                return conn.post(
                    {rpma::read{.remote = client.regions[0],
                                .remote_offset = slots::block_of(number),
                                .local = {.mr = mr, .offset = block, .len = BLOCK_SIZE},
                                .flags = RPMA_F_COMPLETION_ALWAYS,
                                .op_context = context}});
            }));
            slot->reply = checksum(slot->block, BLOCK_SIZE);
            if (slot->reply != slot->request)
                throw std::runtime_error("it requested another block");
            requested = side.queue.post(nullptr, [&](const void *context) {
                return conn.recv(mr, request, sizeof(slot->request), context);
            });
            // The client may end before it acknowledges its last reply.
            (void)co_await side.queue.post(nullptr, [&](const void *context) {
                return conn.send(mr, reply, sizeof(slot->reply), RPMA_F_COMPLETION_ALWAYS,
                                 context);
            });
        }
        if (blocks == 0)
            throw std::runtime_error("it has requested no block");
        side.ended++;
    } catch (const std::exception &error) {
        std::printf("server: client %u is lost: %s\n", number, error.what());
    }
}

static task accept_all(resources &side, rpma::ep ep) {
    constexpr unsigned FAILURES_MAX = 100; // one after the other: the endpoint has failed
    rpma::event_source requests(ep.get_fd(), [&] { return ep.next_incoming(); });
    const event_loop::watch watching(side.loop, requests);
    for (unsigned failures = 0;;) {
        try {
            auto request = co_await requests;
            serve(side, std::move(request).value()).detach();
            failures = 0;
        } catch (const rpma::error &) { // of this request
            if (++failures == FAILURES_MAX)
                throw;
        }
    }
}

int main(int argc, char *argv[]) try {
    const arguments args = read_arguments(argc, argv, &program);
    resources side(args, RPMA_UTIL_IBV_CONTEXT_LOCAL,
                   RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV);
    rpma::ep ep(side.peer, args.addr, args.port, rpma::ep_cfg().set_backlog(args.number));
    std::printf("server: listening on %s port %s\n", args.addr, args.port);
    const task accepting = accept_all(side, std::move(ep));
    side.loop.run_until(side.ended, args.number);
    std::printf("server: served %u connections in one thread, all data right\n", side.ended);
    return EXIT_SUCCESS;
} catch (const std::exception &error) {
    fail("%s", error.what());
}
