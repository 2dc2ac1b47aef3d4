// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- receives the messages of several clients through one shared receive queue

#include "messages.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

static const struct program program = {
    .example = 13,
    .purpose = "Replies to messages until CLIENTS clients, which share one receive queue, have "
               "all replies.",
    .number = "CLIENTS",
};

struct client {
    struct rpma_conn *conn; // NULL: free
    struct rpma_cq *cq;
    uint32_t qp_num;
    unsigned number;
    unsigned round;
    struct message *reply; // being sent: its memory is not used for another message
    struct message *held;  // arrived while the reply was being sent
    const char *failed;    // the reason to delete the connection, or NULL
};

static struct arguments args;
static struct side side;
static struct rpma_srq *srq;
static struct rpma_cq *rcq;
static struct client *clients, *clients_end;
static unsigned served;

// For each client the message whose reply is being sent, and the next one. On iWARP, a message
// without a receive terminates its connection.
static uint32_t receives_for(uint32_t count) {
    return 2 * count;
}

static void post_receive(struct message *message) {
    size_t offset = (size_t)((char *)message - side.memory.ptr);
    CALL(rpma_srq_recv(srq, side.mr, offset, sizeof(*message), message));
}

static void open_srq(void) {
    uint32_t receives = receives_for(args.number);
    struct rpma_srq_cfg *cfg;
    CALL(rpma_srq_cfg_new(&cfg));
    CALL(rpma_srq_cfg_set_rq_size(cfg, receives));
    CALL(rpma_srq_cfg_set_rcq_size(cfg, receives));
    CALL(rpma_srq_new(side.peer, cfg, &srq));
    CALL(rpma_srq_cfg_delete(&cfg));
    CALL(rpma_srq_get_rcq(srq, &rcq));
    for (size_t i = 0; i < receives; i++)
        post_receive((struct message *)(void *)side.memory.ptr + i);
}

// ---- messages

static void reply(struct client *client, struct message *message) {
    client->reply = message;
    if (ntohl(message->client) != client->number || ntohl(message->round) != client->round ||
        client->round == ROUNDS) {
        client->failed = "its message is wrong";
        return;
    }
    message->round = htonl(++client->round);
    if (rpma_send(client->conn, side.mr, (size_t)((char *)message - side.memory.ptr),
                  sizeof(*message), RPMA_F_COMPLETION_ALWAYS, NULL))
        client->failed = "the send was rejected";
}

// The last send may never complete: a client that has the reply may exit before it acknowledges
// it.
static void take_sent(struct client *client) {
    struct ibv_wc wc;
    while (client->round < ROUNDS && !client->failed &&
           !rpma_cq_get_wc(client->cq, 1, &wc, NULL)) {
        struct message *sent = client->reply, *next = client->held;
        if (wc.status != IBV_WC_SUCCESS) {
            client->failed = ibv_wc_status_str(wc.status);
            return;
        }
        client->reply = client->held = NULL;
        post_receive(sent);
        if (next)
            reply(client, next);
    }
}

// Any client may consume a receive of the shared queue: qp_num of the completion identifies it,
// unless its connection was deleted.
static void take_message(const struct ibv_wc *wc) {
    struct message *message = (void *)(uintptr_t)wc->wr_id;
    struct client *client = clients;
    while (client < clients_end && !(client->conn && client->qp_num == wc->qp_num))
        client++;
    if (client == clients_end || client->failed) {
        post_receive(message);
        return;
    }
    take_sent(client);
    if (wc->status != IBV_WC_SUCCESS || wc->byte_len != sizeof(*message) || client->held) {
        client->failed = "its message is wrong";
        post_receive(message);
    } else if (client->reply) {
        client->held = message;
    } else {
        reply(client, message);
    }
}

static void poll_messages(void) {
    struct ibv_wc wc;
    while (!rpma_cq_get_wc(rcq, 1, &wc, NULL))
        take_message(&wc);
}

// ---- clients

// With a connection, mlx5 and others remove its completions that were not polled, and the
// receives with them: no message arrives after the disconnection, so it has none when it is
// deleted. Only after the deletion of the connection the device no longer uses its messages.
static void end_client(struct client *client) {
    (void)rpma_conn_disconnect(client->conn);
    poll_messages();
    (void)rpma_conn_delete(&client->conn);
    if (client->reply)
        post_receive(client->reply);
    if (client->held)
        post_receive(client->held);
    *client = (struct client){.conn = NULL};
}

static bool end_failed_clients(void) {
    bool ended = false;
    for (struct client *client = clients; client < clients_end; client++)
        if (client->failed) {
            printf("server: client %u is lost: %s\n", client->number, client->failed);
            end_client(client);
            ended = true;
        }
    return ended;
}

// Also polls the completions of deleted connections, before a new one may get the same qp_num.
static void take_messages(void) {
    do
        poll_messages();
    while (end_failed_clients());
}

static void accept_request(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg) {
    struct rpma_conn_private_data pdata;
    struct client *client = clients;
    struct rpma_conn_req *req;
    if (take_request(ep, cfg, &req))
        return;
    while (client < clients_end && client->conn)
        client++;
    if (client == clients_end) {
        refuse_request(req, "all places are taken");
        return;
    }
    CALL(rpma_conn_req_get_private_data(req, &pdata));
    (void)is_offer(&pdata, &client->number);
    if (begin_connection(&req, NULL, &client->conn))
        return; // the client has gone
    CALL(rpma_conn_get_cq(client->conn, &client->cq));
    CALL(rpma_conn_get_qp_num(client->conn, &client->qp_num));
}

static void take_event(struct client *client) {
    enum rpma_conn_event event;
    int ret = rpma_conn_next_event(client->conn, &event);
    if (ret == RPMA_E_NO_EVENT || (!ret && event == RPMA_CONN_ESTABLISHED))
        return;
    take_messages(); // that arrived before
    if (ret || event != RPMA_CONN_CLOSED || client->round < ROUNDS) {
        client->failed = ret ? rpma_err_2str(ret) : rpma_utils_conn_event_2str(event);
        return;
    }
    served++;
    end_client(client);
}

// ---- the loop

// The descriptors: of the endpoint, of the queue of messages, and two of each client.
enum { ENDPOINT, MESSAGES, CLIENTS };

static void wait_for_events(struct pollfd *fds, nfds_t count) {
    for (struct client *client = clients; client < clients_end; client++) {
        struct pollfd *own = &fds[CLIENTS + 2 * (client - clients)];
        own[0] = own[1] = (struct pollfd){.fd = -1, .events = POLLIN};
        if (client->conn) {
            CALL(rpma_conn_get_event_fd(client->conn, &own[0].fd));
            CALL(rpma_cq_get_fd(client->cq, &own[1].fd));
        }
    }
    if (poll(fds, count, -1) < 0 && errno != EINTR)
        fail("poll: %s", strerror(errno));
}

static void serve(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg) {
    nfds_t count = CLIENTS + 2 * args.number;
    struct pollfd *fds = calloc(count, sizeof(*fds));
    if (!fds)
        fail("cannot start: %s", strerror(errno));
    fds[ENDPOINT].events = fds[MESSAGES].events = POLLIN;
    CALL(rpma_ep_get_fd(ep, &fds[ENDPOINT].fd));
    CALL(rpma_cq_get_fd(rcq, &fds[MESSAGES].fd));
    while (served < args.number) {
        wait_for_events(fds, count);
        if (fds[MESSAGES].revents)
            (void)rpma_cq_wait(rcq); // arms the descriptor for the next completion
        take_messages();
        for (struct client *client = clients; client < clients_end; client++) {
            const struct pollfd *own = &fds[CLIENTS + 2 * (client - clients)];
            if (client->conn && own[1].revents) {
                (void)rpma_cq_wait(client->cq);
                take_sent(client);
            }
            if (client->conn && own[0].revents)
                take_event(client);
        }
        take_messages();
        if (fds[ENDPOINT].revents)
            accept_request(ep, cfg);
    }
    free(fds);
}

int main(int argc, char *argv[]) {
    args = read_arguments(argc, argv, &program);
    side = open_server_side(&args, receives_for(args.number) * sizeof(struct message), USAGE);
    clients = calloc(args.number, sizeof(*clients));
    if (!clients)
        fail("cannot start: %s", strerror(errno));
    clients_end = clients + args.number;
    open_srq();

    struct rpma_conn_cfg *cfg = make_conn_cfg(0, false);
    CALL(rpma_conn_cfg_set_srq(cfg, srq));
    struct rpma_ep *ep = start_listening(side.peer, &args);
    serve(ep, cfg);
    for (struct client *client = clients; client < clients_end; client++)
        if (client->conn)
            client->failed = "the server ends";
    (void)end_failed_clients();
    printf("server: replied to %d messages of each of %u clients\n", ROUNDS, args.number);

    CALL(rpma_ep_shutdown(&ep));
    CALL(rpma_conn_cfg_delete(&cfg));
    CALL(rpma_srq_delete(&srq));
    free(clients);
    close_side(&side);
    return EXIT_SUCCESS;
}
