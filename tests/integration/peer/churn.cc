// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// churn.cc -- commands that make and delete connections from many threads

#include "peer.hh"

#include <deque>

namespace {

// Writes eight bytes to the region that the accepting side describes in its private data.
void write_once(rpma_conn *conn, size_t number) {
    rpma_conn_private_data pdata = {};
    Scoped<rpma_mr_remote, rpma_mr_remote_delete> remote;
    ibv_wc wc;
    must(rpma_conn_get_private_data(conn, &pdata));
    must(rpma_mr_remote_from_descriptor(pdata.ptr, pdata.len, &remote.it));
    must(rpma_write(conn, remote.it, 8 * number, world.mr[number], 0, 8,
                    RPMA_F_COMPLETION_ALWAYS, nullptr));
    await_completion(queue_of(conn), &wc);
}

void come_and_go(const Args &args, size_t number) {
    ScopedReq req;
    ScopedConn conn;
    must(rpma_conn_req_new(world.peer, args.text("addr").c_str(), args.text("port").c_str(),
                           nullptr, &req.it));
    must(rpma_conn_req_connect(&req.it, nullptr, &conn.it));
    await_event(conn.it, RPMA_CONN_ESTABLISHED);
    write_once(conn.it, number);
    must(rpma_conn_disconnect(conn.it));
    await_event(conn.it, RPMA_CONN_CLOSED);
    must(rpma_conn_delete(&conn.it));
}

void churn(const Args &args) {
    std::vector<uint64_t> done(args.slot("threads", MAX_OTHERS + 1));
    const int64_t began = now_ms();
    const AtEnd told{[&] {
        for (size_t i = 0; i < done.size(); i++)
            reply("done" + std::to_string(i), done[i]);
        reply("ms", now_ms() - began);
    }};
    in_threads(done.size(), [&](size_t number) {
        for (; done[number] < args.number("count"); done[number]++)
            come_and_go(args, number);
    });
}

// A client that leaves at once may be gone before the connection is established here.
void see_off(rpma_conn *conn) {
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    must(rpma_conn_next_event(conn, &event));
    if (event == RPMA_CONN_ESTABLISHED)
        await_event(conn, RPMA_CONN_CLOSED);
    else
        must_be(event == RPMA_CONN_CLOSED, ERR_MISMATCH);
}

// Accepts count connections one after the other; each belongs to a thread until it is closed.
void host(const Args &args) {
    std::vector<unsigned char> descriptor = descriptor_of(world.mr[0]);
    const rpma_conn_private_data pdata = private_data(descriptor);
    std::deque<int> codes;
    std::deque<std::jthread> guests;
    const AtEnd told{[&] { reply("welcomed", codes.size()); }};
    while (codes.size() < args.number("count")) {
        ScopedReq req;
        rpma_conn *conn = nullptr;
        must(rpma_ep_next_conn_req(world.ep, nullptr, &req.it));
        must(rpma_conn_req_connect(&req.it, &pdata, &conn));
        codes.push_back(0);
        guests.emplace_back([conn, &code = codes.back()]() mutable {
            try {
                see_off(conn);
            } catch (const Failed &failed) {
                code = failed.code;
            }
            rpma_conn_disconnect(conn); // finishes the disconnection that the other side began
            const int deleted = rpma_conn_delete(&conn);
            code = code != 0 ? code : deleted;
        });
    }
    guests.clear();
    for (const int code : codes)
        must(code);
}

const Commands here{{"churn", churn}, {"host", host}};

} // namespace
