// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- polls a receive CQ for its receives; its sends complete in the main CQ

#include "sum.h"

#include <endian.h>
#include <stdlib.h>

static const struct program program = {
    .example = 12,
    .purpose = "Adds eight numbers of one client, and receives them through a separate CQ.",
    .variant = "--shared-channel",
};

/*
 * On a shared channel both CQs wake the program, and rpma_conn_wait() returns the ready one. A
 * wake-up without a completion is possible.
 */
static struct ibv_wc await(struct rpma_conn *conn, bool receive, bool shared_channel) {
    struct rpma_cq *wanted, *cq;
    struct ibv_wc wc;
    bool is_rcq;
    int fd;
    CALL(receive ? rpma_conn_get_rcq(conn, &wanted) : rpma_conn_get_cq(conn, &wanted));
    if (!shared_channel)
        return await_completion(wanted);
    CALL(rpma_conn_get_compl_fd(conn, &fd));
    while (!poll_completion(wanted, &wc)) {
        await_readable(fd);
        CALL(rpma_conn_wait(conn, 0, &cq, &is_rcq));
        if ((cq == wanted) != (is_rcq == receive))
            fail("the completion is in an unknown CQ");
    }
    return wc;
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_server_side(&args, sizeof(struct content), USAGE);
    struct content *content = (void *)side.memory.ptr;
    struct rpma_conn_cfg *cfg = make_conn_cfg(NUMBERS, args.variant);
    struct rpma_receive receives[NUMBERS];
    uint64_t sum = 0;

    struct rpma_ep *ep = start_listening(side.peer, &args);
    struct rpma_conn *conn = NULL;
    for (size_t i = 0; i < NUMBERS; i++)
        receives[i] = (struct rpma_receive){
            .local = {side.mr, i * sizeof(uint64_t), sizeof(uint64_t)},
        };
    while (!conn) {
        struct rpma_conn_req *req = next_request(ep, cfg);
        CALL(rpma_conn_req_recv_many(req, receives, NUMBERS, NULL));
        conn = try_accept(&req, NULL);
    }

    for (size_t half = 0; half < 2; half++) {
        for (size_t i = 0; i < NUMBERS / 2; i++) {
            if (await(conn, true, args.variant).byte_len != sizeof(uint64_t))
                fail("a message is not a number");
            sum += be64toh(content->numbers[half * NUMBERS / 2 + i]);
        }
        // The client waits for both replies, so it still acknowledges the first one.
        if (half > 0 && await(conn, false, args.variant).opcode != IBV_WC_SEND)
            fail("unexpected completion in the main CQ instead of the first reply");
        content->sums[half] = htobe64(sum);
        CALL(rpma_send(conn, side.mr, offsetof(struct content, sums[half]), sizeof(uint64_t),
                       RPMA_F_COMPLETION_ALWAYS, NULL));
    }
    // The last send may never complete: a client that has the reply may exit before it
    // acknowledges it. Its disconnection also confirms the reply.
    await_disconnect(&conn);
    printf("server: received %d numbers, replied with their sum %d\n", NUMBERS, (int)sum);

    CALL(rpma_ep_shutdown(&ep));
    CALL(rpma_conn_cfg_delete(&cfg));
    close_side(&side);
    return EXIT_SUCCESS;
}
