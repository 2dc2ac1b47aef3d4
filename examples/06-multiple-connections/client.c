// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- offers a block to the server, requests a read of the block, waits for the reply

#include "messages.h"

#include <arpa/inet.h>
#include <stdlib.h>

struct content {
    char block[BLOCK_SIZE];
    struct message request, reply;
};

static const struct program program = {
    .example = 6,
    .purpose = "Offers a block to a server of several clients; NUMBER identifies the client.",
    .number = "NUMBER",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side =
        open_client_side(&args, sizeof(struct content),
                         RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV);
    struct content *content = (void *)side.memory.ptr;
    struct offer offer = {.peer = side.peer, .mr = side.mr, .number = args.number};
    struct rpma_conn_req *req;

    fill_block(content->block, BLOCK_SIZE, args.number);
    content->request.checksum = htonl(checksum(content->block, BLOCK_SIZE));

    // Post the receive before the connection is established, so that no reply is lost.
    CALL(rpma_conn_req_new(side.peer, args.addr, args.port, NULL, &req));
    CALL(rpma_conn_req_recv(req, side.mr, offsetof(struct content, reply),
                            sizeof(struct message), NULL));
    struct rpma_conn *conn = establish(&req, &offer);
    struct completions completions = completions_of(conn, NULL, false);
    CALL(rpma_send(conn, side.mr, offsetof(struct content, request), sizeof(struct message),
                   RPMA_F_COMPLETION_ALWAYS, NULL));
    await_operation(&completions);
    await_receive(&completions);
    if (content->reply.checksum != content->request.checksum)
        fail("the server has read other data");
    printf("client %u: the server has read %zu bytes, all right\n", args.number, BLOCK_SIZE);

    disconnect(&conn);
    close_side(&side);
    return EXIT_SUCCESS;
}
