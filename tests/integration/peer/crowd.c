// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// crowd.c -- commands of a client with many connections to a server that performs "serve"

#include <arpa/inet.h>
#include <string.h>

#include "await.h"
#include "load.h"
#include "peer.h"

static struct worker members[MAX_CONNS];
static size_t crowd;

/* The answer's private data tell this connection's share of the region, and the region. */
static int find_share(struct worker *w) {
    struct rpma_conn_private_data pdata = {NULL, 0};
    uint32_t number = 0;
    int ret = rpma_conn_get_private_data(w->conn, &pdata);
    if (ret == 0 && pdata.len <= sizeof(number))
        ret = ERR_MISMATCH;
    if (ret != 0)
        return ret;
    memcpy(&number, pdata.ptr, sizeof(number));
    w->seed = ntohl(number);
    w->share = w->seed * REMOTE;
    if (world.remote[0] == NULL)
        ret = rpma_mr_remote_from_descriptor((char *)pdata.ptr + sizeof(number),
                                             pdata.len - sizeof(number), &world.remote[0]);
    w->remote = world.remote[0];
    return ret;
}

static int join(const struct args *args, size_t number) {
    struct worker *w = &members[number];
    struct rpma_conn_req *req = NULL;
    memset(w, 0, sizeof(*w));
    w->mr = world.mr[0];
    w->base = world.memory[0].base;
    w->random = (unsigned)(arg_number_or(args, "seed", 0) + number);
    int ret = rpma_conn_req_new(world.peer, arg_text(args, "addr"), arg_text(args, "port"),
                                NULL, &req);
    if (ret == 0)
        ret = rpma_conn_req_connect(&req, NULL, &world.conn[number]);
    w->conn = world.conn[number];
    if (ret == 0)
        ret = await_event(w->conn, RPMA_CONN_ESTABLISHED);
    if (ret == 0)
        ret = find_share(w);
    return ret == 0 ? rpma_conn_get_cq(w->conn, &w->cq) : ret;
}

/* Makes count connections. */
static int do_crowd(const struct args *args) {
    size_t count = arg_slot(args, "count", MAX_CONNS + 1);
    int ret = 0;
    crowd = 0;
    while (ret == 0 && crowd < count) {
        ret = join(args, crowd);
        crowd += ret == 0;
    }
    reply("crowd=%zu", crowd);
    return ret;
}

/* Each connection fills its share with a pattern of its own and exchanges a message. */
static int do_crowd_greet(const struct args *args) {
    (void)args;
    for (size_t i = 0; i < crowd; i++) {
        int ret = write_pattern(&members[i], 0, REMOTE, members[i].seed);
        if (ret == 0)
            ret = exchange(&members[i]);
        if (ret != 0) {
            reply("conn=%zu", i);
            return ret;
        }
    }
    return 0;
}

/* The connections take turns with random operations. */
static int do_crowd_work(const struct args *args) {
    int64_t deadline = now_ms() + (int64_t)arg_number(args, "ms");
    uint64_t done = 0;
    int ret = 0;
    while (ret == 0 && now_ms() < deadline) {
        struct worker *w = &members[done % crowd];
        ret = any_operation(w);
        if (ret != 0)
            reply("in=%s", w->failed_in);
        done += ret == 0;
    }
    reply("done=%llu", (unsigned long long)done);
    return ret;
}

static int leave(size_t number) {
    int ret = await_event(members[number].conn, RPMA_CONN_CLOSED);
    int deleted = rpma_conn_delete(&world.conn[number]);
    return ret != 0 ? ret : deleted;
}

/* Ends every connection from this side. */
static int do_crowd_end(const struct args *args) {
    int ret = 0;
    (void)args;
    for (size_t i = 0; ret == 0 && i < crowd; i++)
        ret = rpma_conn_disconnect(members[i].conn);
    for (size_t i = 0; ret == 0 && i < crowd; i++)
        ret = leave(i);
    rpma_mr_remote_delete(&world.remote[0]);
    crowd = 0;
    return ret;
}

/* Waits until the other side ends the connections; the answer says how many ended within
 * timeout.
 * */
static int do_crowd_ended(const struct args *args) {
    int64_t deadline = now_ms() + (int64_t)arg_number(args, "timeout");
    size_t ended = 0;
    int ret = 0;
    for (size_t i = 0; ret == 0 && i < crowd; i++) {
        int64_t left = deadline - now_ms();
        int fd = -1;
        ret = rpma_conn_get_event_fd(members[i].conn, &fd);
        if (ret == 0)
            ended += wait_readable(fd, left > 0 ? (int)left : 0) == 0;
    }
    reply("ended=%zu", ended);
    return ret;
}

const struct command crowd_commands[] = {
    {"crowd", do_crowd},         {"crowd-greet", do_crowd_greet}, {"crowd-work", do_crowd_work},
    {"crowd-end", do_crowd_end}, {"crowd-ended", do_crowd_ended}, {NULL, NULL},
};
