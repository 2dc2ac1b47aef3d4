// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- writes blocks of its store into the memory of the clients that request them

#include "mover.h"

#include <arpa/inet.h>
#include <stdlib.h>

/*
 * A client has DEPTH requests without a reply. The server has DEPTH replies in progress for
 * it and holds further requests until one of them is sent: this guarantees a receive for every
 * message, and space in the send queue for every reply.
 */
#define MESSAGES (2 * DEPTH * CLIENTS_MAX)
#define OPERATIONS (2 * DEPTH) // of a client: a block and a reply each

static const struct program program = {
    .example = 15,
    .purpose = "Serves the blocks of a store to clients, until it is stopped.",
    .uses_file = true,
};

struct client {
    struct rpma_conn *conn;
    struct rpma_mr_remote *target; // the client's memory
    struct rpma_batch *batch;      // a block and a reply, changed in place
    uint32_t qp_num;
    unsigned number;    // sent by the client; a newer connection replaces an older one
    unsigned replying;  // replies in progress
    const char *failed; // the reason to drop the connection, or NULL
    bool ending;        // disconnected
    struct source source;
};

// A receive, the request that it received, or the reply to the request.
struct message {
    struct request request;
    struct reply reply;
};

struct use {
    struct client *client; // NULL: the receive is posted
    bool held;             // the request waits until a reply is sent
};

struct content { // of this side's memory
    char store[STORE_BLOCKS][BLOCK_SIZE];
    struct message messages[MESSAGES];
};

static struct side side;
static struct content *content;
static uint32_t checksums[STORE_BLOCKS]; // of the store, computed when it is created
static struct use uses[MESSAGES];
static struct client clients[CLIENTS_MAX];
static struct queues queues;
static struct loop loop;
static struct rpma_ep *ep;
static unsigned long long served;
static struct source peer_source, ep_source;
static bool device_gone;

// ---- requests

static void release(size_t number) {
    struct message *message = &content->messages[number];
    uses[number] = (struct use){.client = NULL};
    size_t offset = offsetof(struct content, messages[number].request);
    device_gone |= rpma_srq_recv(queues.srq, side.mr, offset, sizeof(struct request),
                                 &message->request) != 0;
}

// The block, followed by the reply.
static void make_work(struct rpma_work work[2], const struct client *client, size_t number,
                      uint32_t block, uint32_t slot) {
    work[0] = (struct rpma_work){
        .type = RPMA_WORK_WRITE,
        .remote = client->target,
        .remote_offset = slot * BLOCK_SIZE,
        .local = {side.mr, block * BLOCK_SIZE, BLOCK_SIZE},
        .flags = RPMA_F_COMPLETION_ON_ERROR,
    };
    work[1] = (struct rpma_work){
        .type = RPMA_WORK_SEND,
        .local = {side.mr, offsetof(struct content, messages[number].reply),
                  sizeof(struct reply)},
        .flags = RPMA_F_COMPLETION_ALWAYS,
        .op_context = &content->messages[number].reply,
    };
}

static void reply(struct client *client, size_t number) {
    struct message *message = &content->messages[number];
    uint32_t block = ntohl(message->request.block), slot = ntohl(message->request.slot);
    struct rpma_work work[2];
    if (block >= STORE_BLOCKS || slot >= DEPTH) {
        client->failed = "it sent an invalid request";
        return;
    }
    message->reply = (struct reply){message->request.ticket, message->request.block,
                                    message->request.slot, htonl(checksums[block])};
    make_work(work, client, number, block, slot);
    CALL(rpma_batch_set(client->batch, 0, &work[0]));
    CALL(rpma_batch_set(client->batch, 1, &work[1]));
    if (rpma_batch_post(client->batch, NULL))
        client->failed = "the send was rejected";
    uses[number].held = false;
    client->replying++;
}

static void reply_to_held_requests(struct client *client) {
    for (size_t i = 0; i < MESSAGES && client->replying < DEPTH && !client->failed; i++)
        if (uses[i].client == client && uses[i].held)
            reply(client, i);
}

// ---- clients

// Frees the messages of a lost client after the deletion of its connection, because only then
// the device no longer uses them.
static void lose_client(struct client *client) {
    printf("server: client %u is disconnected: %s\n", client->number, client->failed);
    CALL(rpma_batch_delete(&client->batch));
    CALL(rpma_mr_remote_delete(&client->target));
    (void)rpma_conn_delete(&client->conn);
    for (size_t i = 0; i < MESSAGES; i++)
        if (uses[i].client == client)
            release(i);
    *client = (struct client){.conn = NULL};
}

static bool lose_failed_clients(void) {
    bool lost = false;
    for (struct client *client = clients; client < clients + CLIENTS_MAX; client++)
        if (client->failed && port_is_up(side.peer)) {
            if (client->ending)
                lose_client(client);
            else
                stop_receiving(client->conn, &client->ending);
            lost = true;
        }
    return lost;
}

// The queue is shared: qp_num of the completion identifies the client, unless its connection
// was deleted.
static void handle_completion(const struct ibv_wc *wc) {
    const char *context = (const char *)(uintptr_t)wc->wr_id;
    struct client *client = clients;
    while (client < clients + CLIENTS_MAX && !(client->conn && client->qp_num == wc->qp_num))
        client++;
    bool known = client < clients + CLIENTS_MAX, good = wc->status == IBV_WC_SUCCESS;
    if (known && !good && !client->ending)
        client->failed = ibv_wc_status_str(wc->status);
    if (!context) // a block that was not written
        return;
    size_t number = (size_t)(context - (char *)content->messages) / sizeof(struct message);
    bool received = context == (char *)&content->messages[number].request;
    if (received && known && good) {
        uses[number] = (struct use){client, true};
    } else if (received) {
        release(number);
    } else if (known && good) {
        client->replying--;
        served++;
        release(number);
    }
    if (known)
        reply_to_held_requests(client);
}

// Also polls the completions of deleted connections, before a new one may get the same qp_num.
static void poll_completions(void) {
    struct ibv_wc wc;
    do
        while (!rpma_cq_get_wc(queues.cq, 1, &wc, NULL))
            handle_completion(&wc);
    while (lose_failed_clients());
}

static void handle_cq(void *unused) {
    (void)unused;
    device_gone |= !rearm(queues.cq);
}

static void handle_client(void *owner) {
    struct client *client = owner;
    enum rpma_conn_event event;
    int ret = rpma_conn_next_event(client->conn, &event);
    if (ret != RPMA_E_NO_EVENT && (ret || event != RPMA_CONN_ESTABLISHED))
        client->failed = ret ? rpma_err_2str(ret) : rpma_utils_conn_event_2str(event);
}

// ---- requests to connect

// Validate the data of an unknown client before resources are allocated for it.
static bool read_offer(const struct rpma_conn_req *req, struct client *client) {
    struct rpma_conn_private_data pdata;
    uint32_t count = 1;
    size_t room;
    CALL(rpma_conn_req_get_private_data(req, &pdata));
    if (!is_offer(&pdata, &client->number) ||
        rpma_conn_private_data_unpack(&pdata, &client->target, &count, NULL, NULL, NULL) ||
        count == 0)
        return false;
    CALL(rpma_mr_remote_get_size(client->target, &room));
    return client->number > 0 && room >= DEPTH * BLOCK_SIZE;
}

// The entry of the client's older connection, which ends, or a free one, or NULL.
static struct client *place_for(unsigned number) {
    struct client *place = NULL;
    for (struct client *client = clients; client < clients + CLIENTS_MAX; client++)
        if (client->conn && client->number == number)
            client->failed = "it has a newer connection";
    poll_completions();
    for (struct client *client = clients; client < clients + CLIENTS_MAX && !place; client++)
        place = client->conn ? NULL : client;
    return place;
}

static void refuse(struct rpma_conn_req *req, struct client *client, enum refusal refusal) {
    char byte = (char)refusal;
    const struct rpma_conn_private_data pdata = {.ptr = &byte, .len = 1};
    (void)rpma_mr_remote_delete(&client->target);
    (void)rpma_conn_req_reject(&req, &pdata);
}

static void open_client(struct client *client) {
    struct rpma_work work[2];
    int fd;
    CALL(rpma_conn_get_qp_num(client->conn, &client->qp_num));
    CALL(rpma_batch_new(client->conn, 2, &client->batch));
    make_work(work, client, 0, 0, 0);
    CALL(rpma_batch_add(client->batch, &work[0]));
    CALL(rpma_batch_add(client->batch, &work[1]));
    client->source = (struct source){handle_client, client};
    CALL(rpma_conn_get_event_fd(client->conn, &fd));
    watch(&loop, fd, &client->source);
    printf("server: client %u is connected\n", client->number);
}

static void handle_endpoint(void *unused) {
    struct client found = {.conn = NULL};
    struct rpma_conn_req *req;
    (void)unused;
    if (rpma_ep_next_incoming(ep, &req))
        return;
    if (!read_offer(req, &found)) {
        refuse(req, &found, REFUSED_OFFER);
        return;
    }
    struct client *client = place_for(found.number);
    if (!client || rpma_conn_req_setup(req, queues.cfg)) {
        refuse(req, &found, REFUSED_FULL);
        return;
    }
    if (rpma_conn_req_connect(&req, NULL, &found.conn)) {
        (void)rpma_mr_remote_delete(&found.target);
        return;
    }
    *client = found;
    open_client(client);
}

static void handle_peer(void *unused) {
    (void)unused;
    device_gone |= take_peer_event(side.peer, "server") == RPMA_PEER_EVENT_DEVICE_GONE;
}

// ---- the device

static bool open_server(const struct arguments *args) {
    int usage = RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, fd;
    if (!open_device(&side, args->addr, RPMA_UTIL_IBV_CONTEXT_LOCAL, args->file,
                     sizeof(struct content), usage))
        return false;
    device_gone = false;
    content = (void *)side.memory.ptr;
    for (unsigned i = 0; i < STORE_BLOCKS; i++) {
        fill_block(content->store[i], BLOCK_SIZE, i);
        checksums[i] = checksum(content->store[i], BLOCK_SIZE);
    }
    open_queues(&queues, side.peer, MESSAGES + OPERATIONS * CLIENTS_MAX, MESSAGES, OPERATIONS);
    for (size_t i = 0; i < MESSAGES; i++)
        release(i);
    queues.source = (struct source){handle_cq, NULL};
    CALL(rpma_cq_get_fd(queues.cq, &fd));
    watch(&loop, fd, &queues.source);
    peer_source = (struct source){handle_peer, NULL};
    CALL(rpma_peer_get_event_fd(side.peer, &fd));
    watch(&loop, fd, &peer_source);
    ep = start_listening(side.peer, args);
    ep_source = (struct source){handle_endpoint, NULL};
    CALL(rpma_ep_get_fd(ep, &fd));
    watch(&loop, fd, &ep_source);
    return true;
}

static void close_server(void) {
    int fd;
    for (struct client *client = clients; client < clients + CLIENTS_MAX; client++)
        if (client->conn) {
            client->failed = device_gone ? "the device was removed" : "the server ends";
            lose_client(client);
        }
    CALL(rpma_ep_shutdown(&ep));
    CALL(rpma_peer_get_event_fd(side.peer, &fd));
    unwatch(&loop, fd);
    close_queues(&queues);
    close_side(&side);
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    open_loop(&loop);
    while (!loop.stopped) {
        if (!open_server(&args)) {
            run_loop(&loop, RETRY_MS);
            continue;
        }
        while (!loop.stopped && !device_gone) {
            run_loop(&loop, -1);
            poll_completions();
        }
        close_server();
    }
    printf("server: served %llu blocks\n", served);
    return EXIT_SUCCESS;
}
