// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// crowd.cc -- commands of a client with many connections to a server that performs "serve"

#include "load.hh"

#include <algorithm>
#include <arpa/inet.h>
#include <cstring>

namespace {

std::vector<Worker> crowd; // member n has connection n

// The answer's private data tell this connection's share of the region, and the region.
void find_share(Worker &w) {
    rpma_conn_private_data pdata = {};
    uint32_t number = 0;
    must(rpma_conn_get_private_data(w.conn, &pdata));
    must_be(pdata.len > sizeof(number), ERR_MISMATCH);
    memcpy(&number, pdata.ptr, sizeof(number));
    w.seed = ntohl(number);
    w.share = w.seed * REMOTE;
    if (world.remote[0] == nullptr)
        must(rpma_mr_remote_from_descriptor(static_cast<char *>(pdata.ptr) + sizeof(number),
                                            pdata.len - sizeof(number), &world.remote[0]));
    w.remote = world.remote[0];
}

void join(const Args &args) {
    const size_t number = crowd.size();
    Worker w;
    ScopedReq req;
    w.mr = world.mr[0];
    w.base = world.memory[0].base;
    w.random.seed(static_cast<unsigned>(args.number_or("seed", 0) + number));
    must(rpma_conn_req_new(world.peer, args.text("addr").c_str(), args.text("port").c_str(),
                           nullptr, &req.it));
    must(rpma_conn_req_connect(&req.it, nullptr, &world.conn[number]));
    w.conn = world.conn[number];
    await_event(w.conn, RPMA_CONN_ESTABLISHED);
    find_share(w);
    w.cq = queue_of(w.conn);
    crowd.push_back(w);
}

// Makes count= connections.
void gather(const Args &args) {
    const size_t count = args.slot("count", MAX_CONNS + 1);
    const AtEnd told{[&] { reply("crowd", crowd.size()); }};
    crowd.clear();
    while (crowd.size() < count)
        join(args);
}

// Each connection fills its share with a pattern of its own and exchanges a message.
void greet(const Args &) {
    for (Worker &w : crowd) {
        w.write_pattern(0, REMOTE, w.seed);
        w.exchange();
    }
}

// The connections take turns with random operations.
void work(const Args &args) {
    const int64_t deadline = now_ms() + static_cast<int64_t>(args.number("ms"));
    uint64_t done = 0;
    const AtEnd told{[&] { reply("done", done); }};
    for (; now_ms() < deadline; done++)
        crowd[done % crowd.size()].any_operation();
}

// Ends every connection from this side.
void end(const Args &) {
    for (const Worker &w : crowd)
        must(rpma_conn_disconnect(w.conn));
    for (size_t i = 0; i < crowd.size(); i++) {
        await_event(world.conn[i], RPMA_CONN_CLOSED);
        must(rpma_conn_delete(&world.conn[i]));
    }
    must(rpma_mr_remote_delete(&world.remote[0]));
    crowd = std::vector<Worker>(); // without the memory, because the test compares the heap
}

// Waits until the other side ends the connections; the answer says how many ended within
// timeout=.
void count_ended(const Args &args) {
    const int64_t deadline = now_ms() + static_cast<int64_t>(args.number("timeout"));
    size_t ended = 0;
    for (const Worker &w : crowd)
        try {
            wait_readable(fd_of(rpma_conn_get_event_fd, w.conn),
                          static_cast<int>(std::max<int64_t>(deadline - now_ms(), 0)));
            ended++;
        } catch (const Failed &failed) {
            must_be(failed.code == ERR_TIMEOUT, failed.code);
        }
    reply("ended", ended);
}

const Commands here{
    {"crowd", gather},  {"crowd-greet", greet},       {"crowd-work", work},
    {"crowd-end", end}, {"crowd-ended", count_ended},
};

} // namespace
