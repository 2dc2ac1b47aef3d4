// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- receives the messages of several clients through one shared receive queue

#include "messages.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct program program = {
    .purpose = "Replies to the messages of CLIENTS clients, which share one receive queue.",
    .number = "CLIENTS",
};

struct client {
    struct rpma_conn *conn;
    struct rpma_cq *cq;
    uint32_t qp_num;
    unsigned number;
    unsigned round;
};

// One receive for each client's message, and one for the client whose reply was just sent: it
// may send again before the memory of its reply is available for messages. On iWARP, a message
// without a receive terminates its connection.
static uint32_t receives_for(uint32_t clients) {
    return clients + 1;
}

static struct rpma_srq *open_srq(struct side *side, uint32_t clients) {
    uint32_t receives = receives_for(clients);
    struct rpma_srq_cfg *cfg;
    struct rpma_srq *srq;
    CALL(rpma_srq_cfg_new(&cfg));
    CALL(rpma_srq_cfg_set_rq_size(cfg, receives));
    CALL(rpma_srq_cfg_set_rcq_size(cfg, receives));
    CALL(rpma_srq_new(side->peer, cfg, &srq));
    CALL(rpma_srq_cfg_delete(&cfg));
    for (size_t i = 0; i < receives; i++)
        CALL(rpma_srq_recv(srq, side->mr, i * sizeof(struct message), sizeof(struct message),
                           side->memory.ptr + i * sizeof(struct message)));
    return srq;
}

static void accept_clients(struct rpma_ep *ep, struct rpma_srq *srq, struct client *clients,
                           unsigned count) {
    struct rpma_conn_cfg *cfg = make_conn_cfg(0, false);
    CALL(rpma_conn_cfg_set_srq(cfg, srq));
    for (struct client *client = clients; client < clients + count; client++) {
        client->conn = accept_client(ep, cfg, NULL);
        client->number = offered_number(client->conn);
        CALL(rpma_conn_get_cq(client->conn, &client->cq));
        CALL(rpma_conn_get_qp_num(client->conn, &client->qp_num));
    }
    CALL(rpma_conn_cfg_delete(&cfg));
}

// Any client may consume a receive of the shared queue: qp_num of the completion identifies it.
static void reply(struct side *side, struct rpma_srq *srq, struct client *clients,
                  const struct ibv_wc *wc) {
    struct message *message = (void *)(uintptr_t)wc->wr_id;
    size_t offset = (size_t)((char *)message - side->memory.ptr);
    struct client *client = clients;
    while (client->qp_num != wc->qp_num)
        client++;

    if (ntohl(message->client) != client->number || ntohl(message->round) != client->round)
        fail("a message of client %u is wrong", client->number);
    message->round = htonl(++client->round);
    CALL(rpma_send(client->conn, side->mr, offset, sizeof(*message), RPMA_F_COMPLETION_ALWAYS,
                   NULL));
    // The last send may never complete: a client that has the reply may exit before it
    // acknowledges it. It sends no more messages, so it needs no receive either.
    if (client->round == ROUNDS)
        return;
    // Until the reply is sent, its memory must not be used for another message.
    await_completion(client->cq);
    CALL(rpma_srq_recv(srq, side->mr, offset, sizeof(*message), message));
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side =
        open_server_side(&args, receives_for(args.number) * sizeof(struct message), USAGE);
    struct rpma_srq *srq = open_srq(&side, args.number);
    struct client *clients = calloc(args.number, sizeof(*clients));
    struct rpma_cq *rcq;
    if (!clients)
        fail("cannot start: %s", strerror(errno));

    struct rpma_ep *ep = start_listening(side.peer, &args);
    accept_clients(ep, srq, clients, args.number);
    CALL(rpma_srq_get_rcq(srq, &rcq));
    for (unsigned i = 0; i < args.number * ROUNDS; i++) {
        struct ibv_wc wc = await_completion(rcq);
        reply(&side, srq, clients, &wc);
    }
    for (unsigned i = 0; i < args.number; i++) {
        if (clients[i].round != ROUNDS)
            fail("client %u sent %u messages", clients[i].number, clients[i].round);
        await_disconnect(&clients[i].conn);
    }
    printf("server: replied to %d messages of each of %u clients\n", ROUNDS, args.number);

    CALL(rpma_ep_shutdown(&ep));
    CALL(rpma_srq_delete(&srq));
    free(clients);
    close_side(&side);
    return EXIT_SUCCESS;
}
