// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- replies to each number of the client with the next one

#include "ping-pong.h"

#include <endian.h>
#include <stdlib.h>

static const struct program program = {
    .example = 8,
    .purpose = "Plays ping-pong with one client: replies to each number with the next one.",
    .variant = "--shared-receive-queue",
};

// Of a lost client, because the connection of the next one may have the same qp_num.
static void drop_completions(struct rpma_srq *srq) {
    struct rpma_cq *rcq;
    struct ibv_wc wc;
    CALL(rpma_srq_get_rcq(srq, &rcq));
    while (!rpma_cq_get_wc(rcq, 1, &wc, NULL))
        ;
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_server_side(&args, sizeof(struct messages), USAGE);
    struct messages *messages = (void *)side.memory.ptr;
    struct rpma_conn_cfg *cfg = make_conn_cfg(0, false);
    struct rpma_srq *srq = open_srq(&side, cfg, args.variant);

    struct rpma_ep *ep = start_listening(side.peer, &args);
    struct rpma_conn *conn = NULL;
    while (!conn) {
        struct rpma_conn_req *req = next_request(ep, cfg);
        post_receive(&side, srq, req, NULL);
        conn = try_accept(&req, NULL);
        if (!conn && srq)
            drop_completions(srq);
    }
    struct completions completions = completions_of(conn, srq, false);

    for (int round = 0; round < ROUNDS; round++) {
        struct ibv_wc wc = await_receive(&completions);
        if (wc.byte_len != sizeof(uint64_t))
            fail("unexpected message of %u bytes", wc.byte_len);
        // The memory of the previous reply may be changed once the reply's send has
        // completed.
        if (round > 0)
            await_operation(&completions);
        messages->outgoing = htobe64(be64toh(messages->incoming) + 1);
        // The client sends again after the reply: post the receive first, then the reply.
        if (round < ROUNDS - 1)
            post_receive(&side, srq, NULL, conn);
        send_message(&side, conn);
    }
    // The last send may never complete: a client that has the reply may exit before it
    // acknowledges it. Its disconnection also confirms the reply.
    await_disconnect(&conn);
    printf("server: replied to %d messages, to the last with %d\n", ROUNDS,
           (int)be64toh(messages->outgoing));

    CALL(rpma_ep_shutdown(&ep));
    CALL(srq ? rpma_srq_delete(&srq) : 0);
    CALL(rpma_conn_cfg_delete(&cfg));
    close_side(&side);
    return EXIT_SUCCESS;
}
