// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- persists the data that the client wrote, on request of the client

#include "messages.h"

#include <endian.h>
#include <stdlib.h>

static const struct program program = {
    .example = 9,
    .purpose = "Offers the persistent memory FILE, and persists it on request of one client.",
    .variant = "--shared-channel",
    .uses_file = true,
};

struct content {
    struct request request;
    struct reply reply;
};

static void serve_request(struct content *content, const struct memory *data) {
    uint64_t offset = be64toh(content->request.offset);
    uint64_t size = be64toh(content->request.size);
    if (size > BLOCKS * BLOCK_SIZE || offset > BLOCKS * BLOCK_SIZE - size)
        fail("the client requests memory that it was not offered");
    data->persist(data->ptr + offset, size);
    content->reply.persisted = htobe64(size);
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_server_side(&args, BLOCKS * BLOCK_SIZE, RPMA_MR_USAGE_WRITE_DST);
    struct memory messages = open_memory(NULL, sizeof(struct content));
    struct content *content = (void *)messages.ptr;
    struct offer offer = {.peer = side.peer, .mr = side.mr};
    struct rpma_conn_cfg *cfg = make_conn_cfg(args.variant ? BLOCKS : 0, args.variant);
    struct rpma_mr_local *mr;

    fill_block(side.memory.ptr, BLOCKS * BLOCK_SIZE, 0);
    CALL(rpma_mr_reg(side.peer, content, sizeof(*content),
                     RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &mr));

    struct rpma_ep *ep = start_listening(side.peer, &args);
    struct rpma_conn *conn = NULL;
    while (!conn) {
        struct rpma_conn_req *req = next_request(ep, cfg);
        CALL(rpma_conn_req_recv(req, mr, 0, sizeof(struct request), NULL));
        conn = try_accept(&req, &offer);
    }
    struct completions completions = completions_of(conn, NULL, args.variant);

    for (int i = 0; i < BLOCKS; i++) {
        await_receive(&completions);
        // The memory of the previous reply may be changed once the reply's send has
        // completed.
        if (i > 0)
            await_operation(&completions);
        serve_request(content, &side.memory);
        // The client sends again after the reply: post the receive before.
        if (i < BLOCKS - 1)
            CALL(rpma_recv(conn, mr, 0, sizeof(struct request), NULL));
        CALL(rpma_send(conn, mr, offsetof(struct content, reply), sizeof(struct reply),
                       RPMA_F_COMPLETION_ALWAYS, NULL));
    }
    // The last send may never complete: a client that has the reply may exit before it
    // acknowledges it. Its disconnection also confirms the reply.
    await_disconnect(&conn);
    check_block(side.memory.ptr, BLOCKS * BLOCK_SIZE, 9);
    printf("server: persisted %d blocks in %s, all right\n", BLOCKS, memory_kind(&side.memory));

    CALL(rpma_ep_shutdown(&ep));
    CALL(rpma_conn_cfg_delete(&cfg));
    CALL(rpma_mr_dereg(&mr));
    close_memory(&messages);
    close_side(&side);
    return EXIT_SUCCESS;
}
