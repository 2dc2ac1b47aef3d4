// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// connect.c -- commands for endpoints, requests and the life of connections

#include <netdb.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

struct rpma_conn *the_conn(const struct args *args) {
    struct rpma_conn *conn = world.conn[arg_slot(args, "conn", MAX_CONNS)];
    if (conn == NULL)
        bad_script("%s: no such connection", args->verb);
    return conn;
}

static struct rpma_conn_req **the_req(const struct args *args) {
    return &world.req[arg_slot(args, "req", MAX_CONNS)];
}

struct rpma_conn_req *the_request(const struct args *args) {
    struct rpma_conn_req *req = *the_req(args);
    if (req == NULL)
        bad_script("%s: no such request", args->verb);
    return req;
}

// The defaults, but for the timeout: on a busy machine resolving takes more than a second.
static const struct rpma_conn_cfg *patient_cfg(void) {
    static struct rpma_conn_cfg *cfg;
    if (cfg == NULL && rpma_conn_cfg_new(&cfg) == 0)
        (void)rpma_conn_cfg_set_timeout(cfg, PATIENCE_MS);
    return cfg;
}

static const struct rpma_conn_cfg *the_cfg(const struct args *args) {
    if (arg_text_or(args, "cfg", NULL) == NULL)
        return arg_number_or(args, "defaults", 0) != 0 ? NULL : patient_cfg();
    return world.cfg[arg_slot(args, "cfg", MAX_OTHERS)];
}

static int do_listen(const struct args *args) {
    return rpma_ep_listen(world.peer, arg_text(args, "addr"), arg_text(args, "port"),
                          &world.ep);
}

static int do_ep_shutdown(const struct args *args) {
    (void)args;
    return rpma_ep_shutdown(&world.ep);
}

static void reply_private_data(const struct rpma_conn_private_data *pdata) {
    reply_bytes("pdata", pdata->ptr, pdata->len);
}

/* timeout=0: librpma waits. */
static int do_next_req(const struct args *args) {
    int timeout = (int)arg_number_or(args, "timeout", 60000);
    struct rpma_conn_private_data pdata = {NULL, 0};
    int fd = -1;
    int ret = rpma_ep_get_fd(world.ep, &fd);
    if (ret == 0 && timeout > 0)
        ret = wait_readable(fd, timeout);
    if (ret == 0)
        ret = rpma_ep_next_conn_req(world.ep, the_cfg(args), the_req(args));
    if (ret == 0)
        ret = rpma_conn_req_get_private_data(*the_req(args), &pdata);
    if (ret == 0)
        reply_private_data(&pdata);
    return ret;
}

static int do_req_new(const struct args *args) {
    return rpma_conn_req_new(world.peer, arg_text(args, "addr"), arg_text(args, "port"),
                             the_cfg(args), the_req(args));
}

/* Takes a request without queues. */
static int do_next_incoming(const struct args *args) {
    int fd = -1;
    int ret = rpma_ep_get_fd(world.ep, &fd);
    if (ret == 0)
        ret = wait_readable(fd, 60000);
    return ret != 0 ? ret : rpma_ep_next_incoming(world.ep, the_req(args));
}

static int do_req_start(const struct args *args) {
    return rpma_conn_req_start(world.peer, arg_text(args, "addr"), arg_text(args, "port"),
                               the_cfg(args), the_req(args));
}

/* Until the request is ready or has failed. */
static int do_req_resolve(const struct args *args) {
    int fd = -1;
    int ret = rpma_conn_req_get_event_fd(the_request(args), &fd);
    while (ret == 0 && (ret = rpma_conn_req_resolve(the_request(args))) == RPMA_E_AGAIN)
        ret = wait_readable(fd, 60000);
    return ret;
}

static int do_req_setup(const struct args *args) {
    return rpma_conn_req_setup(the_request(args), the_cfg(args));
}

static int do_req_reject(const struct args *args) {
    unsigned char data[255];
    size_t len = arg_bytes(args, "pdata", data, sizeof(data));
    struct rpma_conn_private_data pdata = {data, (uint8_t)len};
    return rpma_conn_req_reject(the_req(args), &pdata);
}

/* The address of the other side of a request. */
static int do_peer_addr(const struct args *args) {
    struct sockaddr_storage addr;
    char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
    int ret = rpma_conn_req_get_peer_addr(the_request(args), &addr);
    if (ret == 0 && getnameinfo((struct sockaddr *)&addr, sizeof(addr), host, sizeof(host),
                                port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
        ret = ERR_SYSTEM;
    reply("addr=%s port=%s", host, port);
    return ret;
}

static int do_req_delete(const struct args *args) {
    return rpma_conn_req_delete(the_req(args));
}

static int do_connect(const struct args *args) {
    unsigned char data[255];
    size_t len = arg_bytes(args, "pdata", data, sizeof(data));
    struct rpma_conn_private_data pdata = {data, (uint8_t)len};
    return rpma_conn_req_connect(the_req(args), len > 0 ? &pdata : NULL,
                                 &world.conn[arg_slot(args, "conn", MAX_CONNS)]);
}

/* timeout=0: librpma waits. */
static int do_event(const struct args *args) {
    static const char *const names[] = {"ESTABLISHED", "CLOSED", "LOST", "REJECTED",
                                        "UNREACHABLE"};
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    struct rpma_conn *conn = the_conn(args);
    int timeout = (int)arg_number_or(args, "timeout", 60000);
    int64_t began = now_ms();
    int fd = -1;
    int ret = rpma_conn_get_event_fd(conn, &fd);
    if (ret == 0 && timeout > 0)
        ret = wait_readable(fd, timeout);
    if (ret == 0)
        ret = rpma_conn_next_event(conn, &event);
    if (ret == 0)
        reply("event=%s", names[event]);
    reply("ms=%lld", (long long)(now_ms() - began));
    return ret;
}

static int do_pdata(const struct args *args) {
    struct rpma_conn_private_data pdata = {NULL, 0};
    int ret = rpma_conn_get_private_data(the_conn(args), &pdata);
    if (ret == 0)
        reply_private_data(&pdata);
    return ret;
}

static int do_qp(const struct args *args) {
    uint32_t qp_num = 0;
    int ret = rpma_conn_get_qp_num(the_conn(args), &qp_num);
    if (ret == 0)
        reply("qp=%u", qp_num);
    return ret;
}

static int do_flush_mode(const struct args *args) {
    enum rpma_flush_mode mode = RPMA_FLUSH_MODE_AUTO;
    int ret = rpma_conn_get_flush_mode(the_conn(args), &mode);
    if (ret == 0)
        reply("mode=%s", mode == RPMA_FLUSH_MODE_NATIVE ? "native" : "emulated");
    return ret;
}

static int do_disconnect(const struct args *args) {
    return rpma_conn_disconnect(the_conn(args));
}

static int do_conn_delete(const struct args *args) {
    return rpma_conn_delete(&world.conn[arg_slot(args, "conn", MAX_CONNS)]);
}

/* Many clients in a row that the server rejects. */
static int do_be_refused(const struct args *args) {
    uint64_t count = arg_number(args, "count");
    for (uint64_t i = 0; i < count; i++) {
        struct rpma_conn_req *req = NULL;
        struct rpma_conn *conn = NULL;
        enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
        int ret = rpma_conn_req_new(world.peer, arg_text(args, "addr"), arg_text(args, "port"),
                                    NULL, &req);
        if (ret == 0)
            ret = rpma_conn_req_connect(&req, NULL, &conn);
        if (ret == 0)
            ret = rpma_conn_next_event(conn, &event);
        rpma_conn_delete(&conn);
        if (ret != 0 || event != RPMA_CONN_REJECTED) {
            reply("client=%llu event=%d", (unsigned long long)i, event);
            return ret != 0 ? ret : ERR_MISMATCH;
        }
    }
    return 0;
}

static int do_refuse(const struct args *args) {
    uint64_t count = arg_number(args, "count");
    int ret = 0;
    for (uint64_t i = 0; i < count && ret == 0; i++) {
        struct rpma_conn_req *req = NULL;
        ret = rpma_ep_next_conn_req(world.ep, NULL, &req);
        if (ret == 0)
            ret = rpma_conn_req_delete(&req);
        if (ret != 0)
            reply("client=%llu", (unsigned long long)i);
    }
    return ret;
}

const struct command connect_commands[] = {
    {"listen", do_listen},
    {"ep-shutdown", do_ep_shutdown},
    {"next-req", do_next_req},
    {"next-incoming", do_next_incoming},
    {"req-new", do_req_new},
    {"req-start", do_req_start},
    {"req-resolve", do_req_resolve},
    {"req-setup", do_req_setup},
    {"req-reject", do_req_reject},
    {"peer-addr", do_peer_addr},
    {"req-delete", do_req_delete},
    {"connect", do_connect},
    {"event", do_event},
    {"pdata", do_pdata},
    {"qp", do_qp},
    {"flush-mode", do_flush_mode},
    {"disconnect", do_disconnect},
    {"conn-delete", do_conn_delete},
    {"be-refused", do_be_refused},
    {"refuse", do_refuse},
    {NULL, NULL},
};
