// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- serves several clients at once with one epoll loop and without blocking calls

#include "messages.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static const struct program program = {
    .example = 6,
    .purpose = "Serves clients at once, until CLIENTS are served: reads a block of each.",
    .variant = "--shared-channel",
    .number = "CLIENTS",
};

struct client;

// The data of an epoll event: the descriptor that is ready, and its handler.
struct source {
    void (*handle)(struct client *client);
    struct client *client;
};

struct slot { // a part of the server's registered memory, one for each client
    char block[BLOCK_SIZE];
    struct message request, reply;
};

struct client {
    struct rpma_conn *conn; // NULL: free
    struct rpma_cq *cq;
    struct rpma_mr_remote *source;
    unsigned number;
    bool replied;
    struct slot *slot;
    size_t offset; // of the slot
    struct source events, completions;
};

static struct arguments args;
static struct side side;
static struct rpma_ep *ep;
static struct rpma_conn_cfg *cfg;
static struct client *clients;
static unsigned served;
static int epoll_fd;

static void watch(int fd, struct source *source) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ||
        epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event))
        fail("cannot watch a descriptor: %s", strerror(errno));
}

// Deletes the connection before the slot is used again: afterwards the device does not access
// it, not even for an operation whose post has failed.
static void end_client(struct client *client) {
    (void)rpma_conn_disconnect(client->conn);
    CALL(rpma_mr_remote_delete(&client->source));
    (void)rpma_conn_delete(&client->conn); // closing its descriptors removes them from epoll
}

// A client ends only its own connection, whatever it does.
static void lose_client(struct client *client, const char *reason) {
    printf("server: client %u is lost: %s\n", client->number, reason);
    end_client(client);
}

// A request of the client: read its block. A completed read: send the reply. Returns the reason
// to lose the client, or NULL.
static const char *handle_completion(struct client *client, const struct ibv_wc *wc) {
    const struct slot *slot = client->slot;
    int ret = 0;
    if (wc->status != IBV_WC_SUCCESS)
        return ibv_wc_status_str(wc->status);
    if (wc->opcode == IBV_WC_RECV) {
        if (wc->byte_len != sizeof(struct message))
            return "its request has the wrong size";
        ret = rpma_read(client->conn, side.mr, client->offset, client->source, 0, BLOCK_SIZE,
                        RPMA_F_COMPLETION_ALWAYS, NULL);
    } else if (wc->opcode == IBV_WC_RDMA_READ) {
        client->slot->reply.checksum = htonl(checksum(slot->block, BLOCK_SIZE));
        if (slot->reply.checksum != slot->request.checksum ||
            !has_block(slot->block, BLOCK_SIZE, client->number))
            return "its block is wrong";
        ret = rpma_send(client->conn, side.mr, client->offset + offsetof(struct slot, reply),
                        sizeof(struct message), RPMA_F_COMPLETION_ALWAYS, NULL);
        client->replied = true;
    }
    return ret ? rpma_err_2str(ret) : NULL;
}

static void handle_completions(struct client *client) {
    struct rpma_cq *cq = client->cq;
    const char *problem = NULL;
    struct ibv_wc wc;
    // With a shared channel, one descriptor serves both CQs: the call returns the ready one.
    int ret = args.variant ? rpma_conn_wait(client->conn, 0, &cq, NULL) : rpma_cq_wait(cq);
    if (ret == RPMA_E_NO_COMPLETION)
        return;
    // The reply's send may never complete: a client that has the reply may exit before it
    // acknowledges it. Its disconnection also confirms the reply.
    while (!ret && !problem && !client->replied && !(ret = rpma_cq_get_wc(cq, 1, &wc, NULL)))
        problem = handle_completion(client, &wc);
    if (ret && ret != RPMA_E_NO_COMPLETION)
        problem = rpma_err_2str(ret);
    if (problem)
        lose_client(client, problem);
}

static void handle_event(struct client *client) {
    enum rpma_conn_event event;
    int ret = rpma_conn_next_event(client->conn, &event);
    if (ret == RPMA_E_NO_EVENT)
        return;
    if (!ret && event == RPMA_CONN_ESTABLISHED)
        return;
    if (ret || event != RPMA_CONN_CLOSED || !client->replied) {
        lose_client(client, ret ? rpma_err_2str(ret) : rpma_utils_conn_event_2str(event));
        return;
    }
    printf("server: client %u is served\n", client->number);
    served++;
    end_client(client);
}

static void watch_client(struct client *client) {
    int fd;
    client->events = (struct source){handle_event, client};
    CALL(rpma_conn_get_event_fd(client->conn, &fd));
    watch(fd, &client->events);
    client->completions = (struct source){handle_completions, client};
    CALL(rpma_conn_get_cq(client->conn, &client->cq));
    CALL(args.variant ? rpma_conn_get_compl_fd(client->conn, &fd)
                      : rpma_cq_get_fd(client->cq, &fd));
    watch(fd, &client->completions);
}

static struct client *find_free(void) {
    for (struct client *client = clients; client < clients + args.number; client++)
        if (!client->conn)
            return client;
    return NULL;
}

static void handle_request(struct client *unused) {
    struct client *client = find_free();
    struct rpma_conn_private_data pdata;
    struct rpma_conn_req *req;
    (void)unused;
    if (take_request(ep, cfg, &req))
        return;
    if (!client) {
        refuse_request(req, "all places are taken");
        return;
    }
    size_t place = (size_t)(client - clients);
    *client = (struct client){.slot = (struct slot *)(void *)side.memory.ptr + place,
                              .offset = place * sizeof(struct slot)};
    CALL(rpma_conn_req_get_private_data(req, &pdata));
    (void)is_offer(&pdata, &client->number);
    if (rpma_conn_req_recv(req, side.mr, client->offset + offsetof(struct slot, request),
                           sizeof(struct message), NULL)) {
        refuse_request(req, "no receive can be posted");
        return;
    }
    if (begin_connection(&req, NULL, &client->conn))
        return; // the client has gone
    client->source = find_memory(client->conn, NULL);
    if (client->source)
        watch_client(client);
    else
        lose_client(client, "it offers no memory");
}
int main(int argc, char *argv[]) {
    struct source requests = {handle_request, NULL};
    struct epoll_event event;
    int fd;

    args = read_arguments(argc, argv, &program);
    side = open_server_side(&args, args.number * sizeof(struct slot),
                            RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV);
    clients = calloc(args.number, sizeof(*clients));
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (!clients || epoll_fd < 0)
        fail("cannot start: %s", strerror(errno));
    cfg = args.variant ? make_conn_cfg(1, true) : NULL;

    ep = start_listening(side.peer, &args);
    CALL(rpma_ep_get_fd(ep, &fd));
    watch(fd, &requests);

    // Fetch one event at a time: its handler may delete a client to which later events refer.
    while (served < args.number) {
        int ready = epoll_wait(epoll_fd, &event, 1, -1);
        if (ready < 0 && errno != EINTR)
            fail("epoll_wait: %s", strerror(errno));
        struct source *source = event.data.ptr;
        if (ready == 1)
            source->handle(source->client);
    }
    printf("server: served %u clients, all data right\n", served);

    for (struct client *client = clients; client < clients + args.number; client++)
        if (client->conn)
            lose_client(client, "the server ends");
    CALL(rpma_ep_shutdown(&ep));
    CALL(cfg ? rpma_conn_cfg_delete(&cfg) : 0);
    free(clients);
    close_side(&side);
    return EXIT_SUCCESS;
}
