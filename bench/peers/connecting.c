// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// connecting.c -- many connections in one thread, or many requests that nobody answers
//
//   connecting server ADDRESS PORT            accepts everybody
//   connecting hold ADDRESS PORT BACKLOG COUNT takes so many requests and answers none
//   connecting clients PORT ADDRESS...        connects to all addresses, in their order
//   connecting flood ADDRESS PORT COUNT       requests that never finish, without queue pairs
//
// It prints a line when it has got as far, and goes on when it reads a line. Built with AT_ONCE
// it uses what the releases before 1.5 have, to show what they do in the same place.

#include "scene.h"
#include "side.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <sys/epoll.h>
#include <unistd.h>

static struct rpma_peer *peer_at(const char *address, enum rpma_util_ibv_context_type type) {
    struct ibv_context *device = NULL;
    struct rpma_peer *peer = NULL;
    must(rpma_utils_get_ibv_context(address, type, &device), "device");
    must(rpma_peer_new(device, &peer), "peer");
    return peer;
}

static void nonblocking(int fd) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static struct rpma_ep *listen_at(struct rpma_peer *peer, char **argv, uint32_t backlog,
                                 int *fd) {
    struct rpma_ep *ep = NULL;
#ifdef AT_ONCE
    (void)backlog;
    must(rpma_ep_listen(peer, argv[0], argv[1], &ep), "listening");
#else
    struct rpma_ep_cfg *cfg = NULL;
    must(rpma_ep_cfg_new(&cfg), "configuration");
    must(rpma_ep_cfg_set_backlog(cfg, backlog), "backlog");
    must(rpma_ep_listen_with(peer, argv[0], argv[1], cfg, &ep), "listening");
    must(rpma_ep_cfg_delete(&cfg), "configuration");
#endif
    must(rpma_ep_get_fd(ep, fd), "descriptor");
    nonblocking(*fd);
    return ep;
}

// A request as it came, or with its queues.
static int take(struct rpma_ep *ep, struct rpma_conn_req **req) {
#ifdef AT_ONCE
    return rpma_ep_next_conn_req(ep, NULL, req);
#else
    return rpma_ep_next_incoming(ep, req);
#endif
}

// ---- servers -------------------------------------------------------------------------------

static void answer(struct rpma_conn_req *req, int epoll) {
    struct rpma_conn *conn = NULL;
    int fd;
#ifndef AT_ONCE
    must(rpma_conn_req_setup(req, NULL), "queues");
#endif
    must(rpma_conn_req_connect(&req, NULL, &conn), "accepting");
    must(rpma_conn_get_event_fd(conn, &fd), "descriptor");
    nonblocking(fd);
    watch(epoll, fd, conn);
}

// Takes the events of a connection, and deletes it at its end.
static void follow(struct rpma_conn *conn) {
    enum rpma_conn_event event;
    int code;
    while ((code = rpma_conn_next_event(conn, &event)) == 0)
        if (event != RPMA_CONN_ESTABLISHED) {
            (void)rpma_conn_delete(&conn);
            return;
        }
}

static void serve_everybody(char **argv) {
    int fd, epoll = epoll_create1(EPOLL_CLOEXEC);
    struct rpma_peer *peer = peer_at(argv[0], RPMA_UTIL_IBV_CONTEXT_LOCAL);
    struct rpma_ep *ep = listen_at(peer, argv, 0, &fd);
    watch(epoll, fd, ep);
    watch(epoll, STDIN_FILENO, NULL);
    say("listening");
    for (;;) {
        struct epoll_event ready;
        struct rpma_conn_req *req = NULL;
        if (epoll_wait(epoll, &ready, 1, -1) != 1)
            continue;
        if (!ready.data.ptr)
            return;
        if (ready.data.ptr == ep)
            while (take(ep, &req) == 0)
                answer(req, epoll);
        else
            follow(ready.data.ptr);
    }
}

static void hold(char **argv) {
    const uint32_t backlog = (uint32_t)strtoul(argv[2], NULL, 10);
    const size_t count = strtoul(argv[3], NULL, 10);
    struct rpma_conn_req **reqs = calloc(count, sizeof(struct rpma_conn_req *));
    int fd, epoll = epoll_create1(EPOLL_CLOEXEC);
    struct rpma_peer *peer = peer_at(argv[0], RPMA_UTIL_IBV_CONTEXT_LOCAL);
    struct rpma_ep *ep = listen_at(peer, argv, backlog, &fd);
    watch(epoll, fd, ep);
    report("listening");
    wait_for_a_line();
    size_t taken = 0;
    while (take(ep, &reqs[taken]) == 0 && taken < count)
        taken++;
    report("at-once");
    say("taken %zu", taken);
    wait_for_a_line();
    while (taken < count) {
        struct epoll_event ready;
        const int code = take(ep, &reqs[taken]);
        if (code == 0)
            taken++;
        else if (code == RPMA_E_NO_EVENT || errno == EAGAIN)
            epoll_wait(epoll, &ready, 1, -1);
        else
            break;
    }
    report("held");
    say("taken %zu", taken);
    wait_for_a_line();
    for (size_t i = 0; i < taken; i++)
        (void)rpma_conn_req_delete(&reqs[i]);
    for (;;) { // what came in since then, as often as somebody asks
        while (take(ep, &reqs[0]) == 0)
            (void)rpma_conn_req_delete(&reqs[0]);
        report("deleted");
        wait_for_a_line();
    }
}

// ---- clients -------------------------------------------------------------------------------

struct attempt {
    struct rpma_conn_req *req;
    struct rpma_conn *conn;
};

static int begin(struct attempt *a, struct rpma_peer *peer, const char *address,
                 const char *port, int *fd) {
#ifdef AT_ONCE
    int code = TIMED(rpma_conn_req_new(peer, address, port, NULL, &a->req));
    if (code == 0)
        code = TIMED(rpma_conn_req_connect(&a->req, NULL, &a->conn));
    if (code)
        return code;
    must(rpma_conn_get_event_fd(a->conn, fd), "descriptor");
    nonblocking(*fd);
    return 0;
#else
    const int code = TIMED(rpma_conn_req_start(peer, address, port, NULL, &a->req));
    return code ? code : rpma_conn_req_get_event_fd(a->req, fd);
#endif
}

static int go_on(struct attempt *a) {
    enum rpma_conn_event event;
#ifndef AT_ONCE
    if (a->req) {
        int code = TIMED(rpma_conn_req_resolve(a->req));
        if (code == 0)
            code = TIMED(rpma_conn_req_setup(a->req, NULL));
        if (code == 0)
            code = TIMED(rpma_conn_req_connect(&a->req, NULL, &a->conn));
        else if (code != RPMA_E_AGAIN)
            (void)rpma_conn_req_delete(&a->req);
        return code ? code : RPMA_E_AGAIN;
    }
#endif
    const int code = TIMED(rpma_conn_next_event(a->conn, &event));
    if (code)
        return RPMA_E_AGAIN;
    if (event == RPMA_CONN_ESTABLISHED)
        return 0;
    (void)rpma_conn_delete(&a->conn);
    return RPMA_E_UNKNOWN;
}

static void connect_to_all(char **argv) {
    size_t count = 0, up = 0, failed = 0;
    while (argv[1 + count])
        count++;
    struct attempt *attempts = calloc(count, sizeof(*attempts));
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct rpma_peer *peer = peer_at(argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE);
    const double first = milliseconds();
    double last_up = 0, last_failed = 0;
    for (size_t i = 0; i < count; i++) {
        int fd;
        if (begin(&attempts[i], peer, argv[1 + i], argv[0], &fd) == 0) {
            watch(epoll, fd, &attempts[i]);
        } else {
            failed++;
            last_failed = milliseconds() - first;
        }
    }
    while (up + failed < count) {
        struct epoll_event ready;
        if (epoll_wait(epoll, &ready, 1, -1) != 1)
            continue;
        const int code = go_on(ready.data.ptr);
        if (code == RPMA_E_AGAIN)
            continue;
        *(code ? &failed : &up) += 1;
        *(code ? &last_failed : &last_up) = milliseconds() - first;
    }
    say("established %zu failed %zu last-established %.0f last-failed %.0f longest-call %.1f",
        up, failed, last_up, last_failed, longest);
    wait_for_a_line();
    for (size_t i = 0; i < count; i++)
        (void)rpma_conn_delete(&attempts[i].conn);
    must(rpma_peer_delete(&peer), "peer");
    say("gone");
}

// Requests by librdmacm alone; the number of a queue pair is made up.
static void flood(char **argv) {
    const size_t count = strtoul(argv[2], NULL, 10);
    struct rdma_event_channel *events = rdma_create_event_channel();
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *to = NULL;
    if (!events || rdma_getaddrinfo(argv[0], argv[1], &hints, &to) != 0)
        give_up("address");
    for (size_t i = 0; i < count; i++) {
        struct rdma_cm_id *id;
        if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP) != 0 ||
            rdma_resolve_addr(id, NULL, to->ai_dst_addr, 5000) != 0)
            give_up("request");
    }
    for (size_t asked = 0; asked < count;) {
        struct rdma_cm_event *event;
        if (rdma_get_cm_event(events, &event) != 0)
            give_up("event");
        struct rdma_cm_id *id = event->id;
        const enum rdma_cm_event_type type = event->event;
        rdma_ack_cm_event(event);
        struct rdma_conn_param param = {.qp_num = 0x100 + (uint32_t)asked,
                                        .retry_count = 7,
                                        .initiator_depth = 1,
                                        .responder_resources = 1};
        const int failed = type == RDMA_CM_EVENT_ADDR_RESOLVED    ? rdma_resolve_route(id, 5000)
                           : type == RDMA_CM_EVENT_ROUTE_RESOLVED ? rdma_connect(id, &param)
                                                                  : -1;
        if (failed)
            give_up(rdma_event_str(type));
        asked += type == RDMA_CM_EVENT_ROUTE_RESOLVED;
    }
    say("asked");
    wait_for_a_line();
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {{"server", 2, 2, serve_everybody},
                                          {"hold", 4, 4, hold},
                                          {"clients", 2, 1 << 16, connect_to_all},
                                          {"flood", 3, 3, flood},
                                          {0}};
    return run_scene(scenes, argc, argv);
}
