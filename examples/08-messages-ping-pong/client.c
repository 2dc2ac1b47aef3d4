// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- sends numbers to the server and checks the replies

#include "ping-pong.h"

#include <endian.h>
#include <stdlib.h>

static const struct program program = {
    .example = 8,
    .purpose = "Plays ping-pong with the server: it replies to each number with the next one.",
    .variant = "--shared-receive-queue",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, sizeof(struct messages), USAGE);
    struct messages *messages = (void *)side.memory.ptr;
    struct rpma_conn_cfg *cfg = make_conn_cfg(0, false);
    struct rpma_srq *srq = open_srq(&side, cfg, args.variant);
    struct rpma_conn_req *req;

    CALL(rpma_conn_req_new(side.peer, args.addr, args.port, cfg, &req));
    post_receive(&side, srq, req, NULL);
    struct rpma_conn *conn = establish(&req, NULL);
    struct completions completions = completions_of(conn, srq, false);

    uint64_t number = 1000;
    for (int round = 0; round < ROUNDS; round++) {
        // Post the receive for a reply before sending the request.
        if (round > 0)
            post_receive(&side, srq, NULL, conn);
        messages->outgoing = htobe64(number);
        send_message(&side, conn);
        await_operation(&completions);
        await_receive(&completions);
        if (be64toh(messages->incoming) != number + 1)
            fail("the reply to %d is wrong", (int)number);
        number = be64toh(messages->incoming);
    }
    printf("client: %d rounds of ping-pong, all right\n", ROUNDS);

    disconnect(&conn);
    CALL(srq ? rpma_srq_delete(&srq) : 0);
    CALL(rpma_conn_cfg_delete(&cfg));
    close_side(&side);
    return EXIT_SUCCESS;
}
