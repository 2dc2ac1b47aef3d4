// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- one of several clients that exchange messages with one server

#include "messages.h"

#include <arpa/inet.h>
#include <stdlib.h>

static const struct program program = {
    .example = 13,
    .purpose =
        "Exchanges messages with a server of several clients; NUMBER identifies the client.",
    .number = "NUMBER",
};

struct content {
    struct message outgoing, incoming;
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, sizeof(struct content), USAGE);
    struct content *content = (void *)side.memory.ptr;
    struct offer offer = {.peer = side.peer, .number = args.number};
    struct rpma_conn_req *req;

    CALL(rpma_conn_req_new(side.peer, args.addr, args.port, NULL, &req));
    for (int i = 0; i < ROUNDS; i++)
        CALL(rpma_conn_req_recv(req, side.mr, offsetof(struct content, incoming),
                                sizeof(struct message), NULL));
    struct rpma_conn *conn = establish(&req, &offer);
    struct completions completions = completions_of(conn, NULL, false);

    for (unsigned round = 0; round < ROUNDS; round++) {
        content->outgoing = (struct message){htonl(args.number), htonl(round)};
        CALL(rpma_send(conn, side.mr, 0, sizeof(struct message), RPMA_F_COMPLETION_ALWAYS,
                       NULL));
        await_operation(&completions);
        await_receive(&completions);
        if (ntohl(content->incoming.client) != args.number ||
            ntohl(content->incoming.round) != round + 1)
            fail("client %u: the reply of round %u is for another client", args.number, round);
    }
    printf("client %u: %d replies, all right\n", args.number, ROUNDS);

    disconnect(&conn);
    close_side(&side);
    return EXIT_SUCCESS;
}
