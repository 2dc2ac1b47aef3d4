// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// churn.cc -- commands that make and delete many connections: from many threads, or refused
// ones

#include "peer.hh"

#include <deque>

namespace {

// Writes eight bytes to the region that the accepting side describes in its private data.
void write_once(rpma_conn *conn, size_t number) {
    const rpma_conn_private_data pdata = get(rpma_conn_get_private_data, conn);
    Scoped<rpma_mr_remote, rpma_mr_remote_delete> remote;
    must(rpma_mr_remote_from_descriptor(pdata.ptr, pdata.len, &remote.it));
    must(rpma_write(conn, remote.it, 8 * number, world.mr[number], 0, 8,
                    RPMA_F_COMPLETION_ALWAYS, nullptr));
    await_completion(queue_of(conn));
}

void come_and_go(const Args &args, size_t number) {
    ScopedConn conn;
    conn.it = connect_to(args);
    await_event(conn.it, RPMA_CONN_ESTABLISHED);
    write_once(conn.it, number);
    must(rpma_conn_disconnect(conn.it));
    await_event(conn.it, RPMA_CONN_CLOSED);
    must(rpma_conn_delete(&conn.it));
}

void churn(const Args &args) {
    in_threads(args.below(MAX_OTHERS + 1, "threads"), [&](size_t i, const std::atomic<bool> &) {
        for (uint64_t left = args.number("count"); left > 0; left--)
            come_and_go(args, i);
    });
}

// A client that leaves at once may be gone before the connection is established here. Finishes
// the disconnection that the other side began.
void see_off(rpma_conn *conn) {
    if (const rpma_conn_event event = get(rpma_conn_next_event, conn);
        event == RPMA_CONN_ESTABLISHED)
        await_event(conn, RPMA_CONN_CLOSED);
    else
        must_be(event == RPMA_CONN_CLOSED, ERR_MISMATCH);
    rpma_conn_disconnect(conn);
    must(rpma_conn_delete(&conn));
}

// Accepts count= connections one after the other; each belongs to a thread until it is closed.
void host(const Args &args) {
    std::vector<unsigned char> descriptor = descriptor_of(world.mr[0]);
    const rpma_conn_private_data pdata = private_data(descriptor);
    std::deque<int> codes;
    std::deque<std::jthread> guests;
    while (codes.size() < args.number("count")) {
        ScopedReq req;
        rpma_conn *conn = nullptr;
        must(rpma_ep_next_conn_req(world.ep, nullptr, &req.it));
        must(rpma_conn_req_connect(&req.it, &pdata, &conn));
        guests.emplace_back([conn, &code = codes.emplace_back(0)] {
            try {
                see_off(conn);
            } catch (const Failed &failed) {
                code = failed.code;
            }
        });
    }
    guests.clear();
    for (const int code : codes)
        must(code);
    reply("welcomed", codes.size());
}

const Commands here{{"churn", churn}, {"host", host}};

} // namespace
