// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.cc -- opens many connections in one thread, and requests a read of a block over each

#include "exchange.hpp"

enum { ROUNDS = 10 };

static const program program = {
    .example = 16,
    .purpose = "Opens CONNECTIONS connections at once, and offers a block over each.",
    .variant = nullptr,
    .number = "CONNECTIONS",
    .many_servers = false,
    .uses_file = false,
    .direct_write_option = false,
    .new_option = nullptr,
};

static task talk(resources &side, const arguments &args, unsigned number) {
    const std::shared_ptr<slot> slot = side.memory.take();
    rpma::mr_local &mr = side.memory.mr;
    const std::size_t request = side.memory.offset_of(&slot->request);
    const std::size_t reply = side.memory.offset_of(&slot->reply);
    const auto receive = [&](auto &queue) {
        return side.queue.post(slot, [&](const void *context) {
            return queue.recv(mr, reply, sizeof(slot->reply), context);
        });
    };

    auto req = rpma::conn_req::start(side.peer, args.addr, args.port);
    {
        rpma::event_source resolving(req.get_event_fd(), [&] { return req.resolve(); });
        const event_loop::watch watching(side.loop, resolving);
        co_await resolving;
    }
    req.setup(side.cfg);
    rpma::operation replied = receive(req);
    const std::array<unsigned char, 2> numbers = {program.example,
                                                  side.memory.number_of(slot.get())};
    const rpma::packed offer({mr}, nullptr, std::as_bytes(std::span(numbers)));
    rpma::conn conn = std::move(req).connect(offer);
    conn_events events(conn.get_event_fd(), [&] { return conn.next_event(); });
    const event_loop::watch watching(side.loop, events);
    const auto established = co_await events;
    if (established != RPMA_CONN_ESTABLISHED)
        fail("connection %u was not established", number);

    for (unsigned round = 1; round <= ROUNDS; round++) {
        fill_block(slot->block, BLOCK_SIZE, number + round);
        slot->request = checksum(slot->block, BLOCK_SIZE);
        check_success(co_await side.queue.post(slot, [&](const void *context) {
            return conn.send(mr, request, sizeof(slot->request), RPMA_F_COMPLETION_ALWAYS,
                             context);
        }));
        check_success(co_await replied);
        if (slot->reply != slot->request)
            fail("connection %u: the server has read other data", number);
        if (round < ROUNDS)
            replied = receive(conn);
    }
    conn.disconnect();
    const auto closed = co_await events;
    if (closed != RPMA_CONN_CLOSED)
        fail("connection %u is lost", number);
    side.ended++;
}

int main(int argc, char *argv[]) try {
    const arguments args = read_arguments(argc, argv, &program);
    resources side(args, RPMA_UTIL_IBV_CONTEXT_REMOTE,
                   RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV);
    for (unsigned number = 1; number <= args.number; number++)
        talk(side, args, number).detach();
    side.loop.run_until(side.ended, args.number);
    std::printf("client: %u connections, the server has read %u blocks of each, all right\n",
                side.ended, unsigned{ROUNDS});
    return EXIT_SUCCESS;
} catch (const std::exception &error) {
    fail("%s", error.what());
}
