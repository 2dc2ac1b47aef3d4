// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// connect.cc -- commands for endpoints, requests and the life of connections

#include "peer.hh"

#include <netdb.h>

namespace {

rpma_conn_req *&req_of(const Args &args) {
    return world.req[args.slot("req", MAX_CONNS)];
}
rpma_conn *&conn_of(const Args &args) {
    return world.conn[args.slot("conn", MAX_CONNS)];
}

void listen(const Args &args) {
    must(rpma_ep_listen(world.peer, args.text("addr").c_str(), args.text("port").c_str(),
                        &world.ep));
}

void reply_private_data(const rpma_conn_private_data &pdata) {
    reply_bytes("pdata", pdata.ptr, pdata.len);
}

// timeout=0: librpma waits.
void next_request(const Args &args) {
    const int timeout = static_cast<int>(args.number_or("timeout", PATIENCE_MS));
    rpma_conn_private_data pdata = {};
    if (timeout > 0)
        wait_readable(fd_of(rpma_ep_get_fd, world.ep), timeout);
    must(rpma_ep_next_conn_req(world.ep, the_cfg(args), &req_of(args)));
    must(rpma_conn_req_get_private_data(req_of(args), &pdata));
    reply_private_data(pdata);
}

// A request to the address, made at once or in steps.
void request(const Args &args, int make(rpma_peer *, const char *, const char *,
                                        const rpma_conn_cfg *, rpma_conn_req **)) {
    must(make(world.peer, args.text("addr").c_str(), args.text("port").c_str(), the_cfg(args),
              &req_of(args)));
}

// Takes a request without queues.
void next_incoming(const Args &args) {
    wait_readable(fd_of(rpma_ep_get_fd, world.ep));
    must(rpma_ep_next_incoming(world.ep, &req_of(args)));
}

// Until the request is ready or has failed.
void resolve(const Args &args) {
    const int fd = fd_of(rpma_conn_req_get_event_fd, the_request(args));
    int code;
    while ((code = rpma_conn_req_resolve(the_request(args))) == RPMA_E_AGAIN)
        wait_readable(fd);
    must(code);
}

void reject(const Args &args) {
    std::vector<unsigned char> bytes = args.bytes("pdata");
    const rpma_conn_private_data pdata = private_data(bytes);
    must(rpma_conn_req_reject(&req_of(args), &pdata));
}

// The address of the other side of a request.
void peer_address(const Args &args) {
    sockaddr_storage addr;
    char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
    must(rpma_conn_req_get_peer_addr(the_request(args), &addr));
    must_system(getnameinfo(reinterpret_cast<sockaddr *>(&addr), sizeof(addr), host,
                            sizeof(host), port, sizeof(port),
                            NI_NUMERICHOST | NI_NUMERICSERV) == 0,
                "getnameinfo");
    reply("addr", host);
    reply("port", port);
}

void connect(const Args &args) {
    std::vector<unsigned char> bytes = args.bytes("pdata");
    const rpma_conn_private_data pdata = private_data(bytes);
    must(
        rpma_conn_req_connect(&req_of(args), bytes.empty() ? nullptr : &pdata, &conn_of(args)));
}

// timeout=0: librpma waits.
void next_event(const Args &args) {
    static const char *const names[] = {"ESTABLISHED", "CLOSED", "LOST", "REJECTED",
                                        "UNREACHABLE"};
    const int timeout = static_cast<int>(args.number_or("timeout", PATIENCE_MS));
    const int64_t began = now_ms();
    rpma_conn_event event = RPMA_CONN_UNDEFINED;
    rpma_conn *conn = the_conn(args);
    if (timeout > 0)
        wait_readable(fd_of(rpma_conn_get_event_fd, conn), timeout);
    must(rpma_conn_next_event(conn, &event));
    reply("event", names[event]);
    reply("ms", now_ms() - began);
}

void show_private_data(const Args &args) {
    rpma_conn_private_data pdata = {};
    must(rpma_conn_get_private_data(the_conn(args), &pdata));
    reply_private_data(pdata);
}

void show_qp(const Args &args) {
    uint32_t qp_num = 0;
    must(rpma_conn_get_qp_num(the_conn(args), &qp_num));
    reply("qp", qp_num);
}

void show_flush_mode(const Args &args) {
    rpma_flush_mode mode = RPMA_FLUSH_MODE_AUTO;
    must(rpma_conn_get_flush_mode(the_conn(args), &mode));
    reply("mode", mode == RPMA_FLUSH_MODE_NATIVE ? "native" : "emulated");
}

// Many clients in a row that the server rejects.
void be_refused(const Args &args) {
    for (uint64_t i = 0; i < args.number("count"); i++) {
        ScopedReq req;
        ScopedConn conn;
        rpma_conn_event event = RPMA_CONN_UNDEFINED;
        must(rpma_conn_req_new(world.peer, args.text("addr").c_str(), args.text("port").c_str(),
                               nullptr, &req.it));
        must(rpma_conn_req_connect(&req.it, nullptr, &conn.it));
        must(rpma_conn_next_event(conn.it, &event));
        if (event == RPMA_CONN_REJECTED)
            continue;
        reply("client", i);
        reply("event", int{event});
        throw Failed{ERR_MISMATCH};
    }
}

void refuse(const Args &args) {
    for (uint64_t i = 0; i < args.number("count"); i++) {
        rpma_conn_req *req = nullptr;
        must(rpma_ep_next_conn_req(world.ep, nullptr, &req));
        must(rpma_conn_req_delete(&req));
    }
}

const Commands here{
    {"listen", listen},
    {"ep-shutdown", [](const Args &) { must(rpma_ep_shutdown(&world.ep)); }},
    {"next-req", next_request},
    {"next-incoming", next_incoming},
    {"req-new", [](const Args &args) { request(args, rpma_conn_req_new); }},
    {"req-start", [](const Args &args) { request(args, rpma_conn_req_start); }},
    {"req-resolve", resolve},
    {"req-setup",
     [](const Args &args) { must(rpma_conn_req_setup(the_request(args), the_cfg(args))); }},
    {"req-reject", reject},
    {"peer-addr", peer_address},
    {"req-delete", [](const Args &args) { must(rpma_conn_req_delete(&req_of(args))); }},
    {"connect", connect},
    {"event", next_event},
    {"pdata", show_private_data},
    {"qp", show_qp},
    {"flush-mode", show_flush_mode},
    {"disconnect", [](const Args &args) { must(rpma_conn_disconnect(the_conn(args))); }},
    {"conn-delete", [](const Args &args) { must(rpma_conn_delete(&conn_of(args))); }},
    {"be-refused", be_refused},
    {"refuse", refuse},
};

} // namespace

rpma_conn *the_conn(const Args &args) {
    if (conn_of(args) == nullptr)
        bad_script(args.verb() + ": no such connection");
    return conn_of(args);
}

rpma_conn_req *the_request(const Args &args) {
    if (req_of(args) == nullptr)
        bad_script(args.verb() + ": no such request");
    return req_of(args);
}

// Without cfg=: the defaults, but for the timeout, because on a busy machine resolving takes
// more than a second; defaults=1: all defaults.
const rpma_conn_cfg *the_cfg(const Args &args) {
    static rpma_conn_cfg *patient;
    if (args.has("cfg"))
        return world.cfg[args.slot("cfg", MAX_OTHERS)];
    if (args.is("defaults"))
        return nullptr;
    if (patient == nullptr) {
        must(rpma_conn_cfg_new(&patient));
        must(rpma_conn_cfg_set_timeout(patient, PATIENCE_MS));
    }
    return patient;
}

rpma_conn_private_data private_data(std::vector<unsigned char> &bytes) {
    return {bytes.data(), static_cast<uint8_t>(bytes.size())};
}
