// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.cc -- serves many connections in one thread, each with a coroutine

#include "exchange.hpp"

#include <algorithm>
#include <cstring>

static const program program = {
    .purpose = "Serves CONNECTIONS connections at once: reads a block of each on request.",
    .variant = nullptr,
    .number = "CONNECTIONS",
    .many_servers = false,
    .uses_file = false,
    .direct_write_option = false,
    .new_option = nullptr,
};

// Disconnects when the client has disconnected, which ends the receive that the server awaits.
static task disconnect_after(conn_events &events, rpma::conn &conn) {
    const auto event = co_await events; // gcc 12 miscompiles co_await in a condition
    if (event != RPMA_CONN_CLOSED)
        fail("a connection is lost");
    conn.disconnect();
}

static task serve(resources &side, rpma::conn_req req) {
    const std::shared_ptr<slot> slot = side.memory.take();
    rpma::mr_local &mr = side.memory.mr;
    const std::size_t block = side.memory.offset_of(slot->block);
    const std::size_t request = side.memory.offset_of(&slot->request);
    const std::size_t reply = side.memory.offset_of(&slot->reply);

    // The client may send as soon as it is connected.
    req.setup(side.cfg);
    rpma::operation requested = side.queue.post(slot, [&](const void *context) {
        return req.recv(mr, request, sizeof(slot->request), context);
    });
    rpma::conn conn = std::move(req).connect();
    const rpma::received client = rpma::unpack(conn.get_private_data());
    uint64_t offset = 0; // of the client's block
    std::memcpy(&offset, client.bytes.data(), std::min(client.bytes.size(), sizeof(offset)));
    conn_events events(conn.get_event_fd(), [&] { return conn.next_event(); });
    const event_loop::watch watching(side.loop, events);
    const auto event = co_await events;
    if (event != RPMA_CONN_ESTABLISHED)
        fail("a connection was not established");
    const task disconnecting = disconnect_after(events, conn);

    for (;;) {
        const ibv_wc wc = co_await requested;
        if (wc.status != IBV_WC_SUCCESS)
            break;
        check_success(co_await side.queue.post(slot, [&](const void *context) {
            return conn.post(
                {rpma::read{.remote = client.regions.at(0),
                            .remote_offset = be64toh(offset),
                            .local = {.mr = mr, .offset = block, .len = BLOCK_SIZE},
                            .flags = RPMA_F_COMPLETION_ALWAYS,
                            .op_context = context}});
        }));
        slot->reply = checksum(slot->block, BLOCK_SIZE);
        if (slot->reply != slot->request)
            fail("a client requested another block");
        requested = side.queue.post(slot, [&](const void *context) {
            return conn.recv(mr, request, sizeof(slot->request), context);
        });
        // The client may end before it acknowledges its last reply.
        (void)co_await side.queue.post(slot, [&](const void *context) {
            return conn.send(mr, reply, sizeof(slot->reply), RPMA_F_COMPLETION_ALWAYS, context);
        });
    }
    side.ended++;
}

static task accept_all(resources &side, rpma::ep ep, unsigned count) {
    rpma::event_source requests(ep.get_fd(), [&] { return ep.next_incoming(); });
    const event_loop::watch watching(side.loop, requests);
    while (count-- > 0)
        serve(side, std::move((co_await requests).value())).detach();
}

int main(int argc, char *argv[]) try {
    const arguments args = read_arguments(argc, argv, &program);
    resources side(args, RPMA_UTIL_IBV_CONTEXT_LOCAL,
                   RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV);
    rpma::ep ep(side.peer, args.addr, args.port, rpma::ep_cfg().set_backlog(args.number));
    std::printf("server: listening on %s:%s\n", args.addr, args.port);
    accept_all(side, std::move(ep), args.number).detach();
    side.loop.run_until(side.ended, args.number);
    std::printf("server: served %u connections in one thread, all data right\n", side.ended);
    return EXIT_SUCCESS;
} catch (const std::exception &error) {
    fail("%s", error.what());
}
