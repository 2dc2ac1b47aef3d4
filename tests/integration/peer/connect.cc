// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// connect.cc -- commands for endpoints, requests and connections

#include "call.hh"

#include <netdb.h>

namespace {

void listen(const Args &args) {
    const char *addr = args.text("addr").c_str(), *port = args.text("port").c_str();
    if (!args.has("backlog")) {
        must(rpma_ep_listen(fixture.peer, addr, port, &fixture.ep));
        return;
    }
    Scoped<rpma_ep_cfg, rpma_ep_cfg_delete> cfg;
    must(rpma_ep_cfg_new(&cfg.it));
    must(rpma_ep_cfg_set_backlog(cfg.it, args.number<uint32_t>("backlog")));
    must(rpma_ep_listen_with(fixture.peer, addr, port, cfg.it, &fixture.ep));
}

// Receives count= requests, 1 by default; the reply has the number that arrived. With timeout=0
// the call of librpma blocks.
void next_requests(const Args &args, bool has_queues) {
    const size_t first = args.below(MAX_CONNS, "req"), count = args.number("count", 1);
    const int64_t timeout = args.number<int64_t>("timeout", TIMEOUT_MS);
    size_t taken = 0;
    const ScopeExit report{[&] { reply("taken", taken); }};
    for (; taken < count; taken++) {
        rpma_conn_req *&req = fixture.req[first + taken];
        int code;
        do {
            if (timeout > 0)
                wait_readable(get(rpma_ep_get_fd, fixture.ep), timeout);
            code = has_queues ? rpma_ep_next_conn_req(fixture.ep, cfg_of(args), &req)
                              : rpma_ep_next_incoming(fixture.ep, &req);
        } while (code == RPMA_E_NO_EVENT && timeout > 0);
        must(code);
    }
    reply("pdata", get(rpma_conn_req_get_private_data, fixture.req[first]));
}

// Deletes count= requests, 1 by default.
void delete_requests(const Args &args) {
    const size_t first = args.below(MAX_CONNS, "req");
    int failure = 0;
    for (rpma_conn_req *&req : std::span(fixture.req).subspan(first, args.number("count", 1)))
        if (const int code = rpma_conn_req_delete(&req); failure == 0)
            failure = code;
    must(failure);
}

// Repeats until the request is ready or has failed. With timeout=0 it tries once.
void resolve(const Args &args) {
    rpma_conn_req *req = object_of<rpma_conn_req>(args);
    int code;
    while ((code = rpma_conn_req_resolve(req)) == RPMA_E_AGAIN &&
           args.number<bool>("timeout", true))
        wait_readable(get(rpma_conn_req_get_event_fd, req));
    must(code);
}

template <Handle Object, int getter(const Object *, sockaddr_storage *)>
void address(const Args &args) {
    sockaddr_storage addr = get(getter, object_of<Object>(args));
    char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
    require_system(getnameinfo(reinterpret_cast<sockaddr *>(&addr), sizeof(addr), host,
                               sizeof(host), port, sizeof(port),
                               NI_NUMERICHOST | NI_NUMERICSERV) == 0,
                   "getnameinfo");
    reply("addr", host);
    reply("port", port);
}

// With timeout=0 the call of librpma blocks.
void next_event(const Args &args) {
    static const char *const names[] = {"ESTABLISHED", "CLOSED", "LOST", "REJECTED",
                                        "UNREACHABLE"};
    const int64_t timeout = args.number<int64_t>("timeout", TIMEOUT_MS);
    rpma_conn *conn = object_of<rpma_conn>(args);
    if (timeout > 0)
        wait_readable(get(rpma_conn_get_event_fd, conn), timeout);
    reply("event", names[get(rpma_conn_next_event, conn)]);
}

const Commands here{
    {"listen", listen},
    {"ep-shutdown", call(rpma_ep_shutdown)},
    {"next-req", [](const Args &args) { next_requests(args, true); }},
    {"next-incoming", [](const Args &args) { next_requests(args, false); }},
    {"req-new", call(rpma_conn_req_new, {"addr", "port"})},
    {"req-start", call(rpma_conn_req_start, {"addr", "port"})},
    {"req-resolve", resolve},
    {"req-setup", call(rpma_conn_req_setup)},
    {"req-reject", call(rpma_conn_req_reject, {"pdata"})},
    {"req-delete", delete_requests},
    {"req-peer-addr", address<rpma_conn_req, rpma_conn_req_get_peer_addr>},
    {"req-local-addr", address<rpma_conn_req, rpma_conn_req_get_local_addr>},
    {"peer-addr", address<rpma_conn, rpma_conn_get_peer_addr>},
    {"local-addr", address<rpma_conn, rpma_conn_get_local_addr>},
    {"ep-addr", address<rpma_ep, rpma_ep_get_addr>},
    {"connect", call(rpma_conn_req_connect, {"pdata"})},
    {"event", next_event},
    {"pdata", call(rpma_conn_get_private_data, {"pdata"})},
    {"qp", call(rpma_conn_get_qp_num, {"qp"})},
    {"disconnect", call(rpma_conn_disconnect)},
    {"conn-delete", call(rpma_conn_delete)},
};

} // namespace

const rpma_conn_cfg *cfg_of(const Args &args) {
    static rpma_conn_cfg *default_cfg; // on a busy machine, resolving needs more than a second
    if (args.has("cfg"))
        return args.in(fixture.cfg, "cfg");
    if (default_cfg == nullptr) {
        must(rpma_conn_cfg_new(&default_cfg));
        must(rpma_conn_cfg_set_timeout(default_cfg, TIMEOUT_MS));
    }
    return default_cfg;
}

rpma_conn_private_data private_data(std::vector<unsigned char> &bytes) {
    return {bytes.data(), static_cast<uint8_t>(bytes.size())};
}

rpma_conn *connect_to(const Args &args) {
    ScopedReq req;
    must(rpma_conn_req_new(fixture.peer, args.text("addr").c_str(), args.text("port").c_str(),
                           nullptr, &req.it));
    return get(rpma_conn_req_connect, &req.it, nullptr);
}
