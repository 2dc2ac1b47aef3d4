// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- accepts all connections, exposes its memory, and receives or returns messages

#include "common.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>

enum { BATCH = 32 };

struct client;

// The handler of a readable file descriptor.
struct watch {
    void (*handle)(struct client *client);
    struct client *client;
};

struct client {
    struct rpma_conn *conn;
    struct rpma_cq *cq;
    struct watch events, completions;
};

static struct side side;
static struct rpma_ep *endpoint;
static struct rpma_conn_cfg *cfg;
static uint32_t receives; // outstanding receives for each client
static bool is_echo;      // return the messages of one client, then exit
static int epoll;

static void handle_event(struct client *client) {
    enum rpma_conn_event event;
    must(rpma_conn_next_event(client->conn, &event), "rpma_conn_next_event");
    if (event == RPMA_CONN_ESTABLISHED)
        return;
    (void)rpma_conn_disconnect(client->conn);
    must(rpma_conn_delete(&client->conn), "rpma_conn_delete");
    free(client);
    if (is_echo)
        exit(EXIT_SUCCESS);
}

static void receive_again(const struct client *client) {
    must(rpma_recv(client->conn, side.mr, 0, MESSAGE, NULL), "rpma_recv");
    if (is_echo)
        must(rpma_send(client->conn, side.mr, 0, MESSAGE, RPMA_F_COMPLETION_ON_ERROR, NULL),
             "rpma_send");
}

// Posts a new receive for each message that arrived.
static void handle_completions(struct client *client) {
    struct ibv_wc wc[BATCH];
    int got;
    int ret = rpma_cq_wait(client->cq);
    if (ret != RPMA_E_NO_COMPLETION)
        must(ret, "rpma_cq_wait");
    while ((ret = rpma_cq_get_wc(client->cq, BATCH, wc, &got)) == 0)
        for (int i = 0; i < got; i++)
            if (wc[i].status == IBV_WC_SUCCESS)
                receive_again(client);
    if (ret != RPMA_E_NO_COMPLETION)
        must(ret, "rpma_cq_get_wc");
}

static void handle_request(struct client *none) {
    (void)none;
    struct client *client = calloc(1, sizeof(*client));
    if (client == NULL)
        fail("out of memory");
    client->conn = accept_next(&side, endpoint, cfg, receives);
    if (client->conn == NULL)
        fail("a request could not be accepted");
    client->events = (struct watch){handle_event, client};
    client->completions = (struct watch){handle_completions, client};
    int fd;
    must(rpma_conn_get_event_fd(client->conn, &fd), "rpma_conn_get_event_fd");
    watch(epoll, fd, &client->events);
    if (receives == 0)
        return;
    must(rpma_conn_get_cq(client->conn, &client->cq), "rpma_conn_get_cq");
    must(rpma_cq_get_fd(client->cq, &fd), "rpma_cq_get_fd");
    watch(epoll, fd, &client->completions);
}

void serve(char **argv) {
    side = open_side(argv[0], argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL);
    receives = (uint32_t)number(argv[2]);
    must(rpma_conn_cfg_new(&cfg), "rpma_conn_cfg_new");
    if (receives > 0) {
        must(rpma_conn_cfg_set_sq_size(cfg, receives), "rpma_conn_cfg_set_sq_size");
        must(rpma_conn_cfg_set_rq_size(cfg, receives), "rpma_conn_cfg_set_rq_size");
        must(rpma_conn_cfg_set_cq_size(cfg, receives), "rpma_conn_cfg_set_cq_size");
    }
    must(rpma_ep_listen(side.peer, side.address, side.port, &endpoint), "rpma_ep_listen");

    static struct watch requests = {handle_request, NULL};
    epoll = epoll_create1(EPOLL_CLOEXEC);
    int fd;
    must(rpma_ep_get_fd(endpoint, &fd), "rpma_ep_get_fd");
    watch(epoll, fd, &requests);
    puts("listening");
    fflush(stdout);
    for (;;) {
        // Takes one event at a time: its handler may delete the client of the next event.
        struct epoll_event event;
        if (epoll_wait(epoll, &event, 1, -1) != 1)
            continue;
        const struct watch *ready = event.data.ptr;
        ready->handle(ready->client);
    }
}

void serve_echo(char **argv) {
    is_echo = true;
    serve(argv);
}
