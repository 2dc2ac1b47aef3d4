// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- writes into the server's memory and requests that the server persists the data

#include "messages.h"

#include <endian.h>
#include <stdlib.h>

static const struct program program = {
    .example = 9,
    .purpose = "Writes blocks into the server's memory and requests that it persists each.",
    .variant = "--shared-channel",
};

struct content {
    char data[BLOCKS * BLOCK_SIZE];
    struct request request;
    struct reply reply;
};

// A send arrives after earlier writes: when the request is received, the data is in memory.
static void write_block(struct side *side, struct completions *completions,
                        struct rpma_mr_remote *target, size_t offset) {
    struct content *content = (void *)side->memory.ptr;
    content->request = (struct request){.offset = htobe64(offset), .size = htobe64(BLOCK_SIZE)};
    CALL(rpma_write(completions->conn, target, offset, side->mr, offset, BLOCK_SIZE,
                    RPMA_F_COMPLETION_ON_ERROR, NULL));
    CALL(rpma_send(completions->conn, side->mr, offsetof(struct content, request),
                   sizeof(struct request), RPMA_F_COMPLETION_ALWAYS, NULL));
    await_operation(completions);
    await_receive(completions);
    if (be64toh(content->reply.persisted) != BLOCK_SIZE)
        fail("the server has not persisted the block at offset %zu", offset);
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side =
        open_client_side(&args, sizeof(struct content),
                         RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV);
    struct rpma_conn_cfg *cfg = make_conn_cfg(args.variant ? BLOCKS : 0, args.variant);
    struct rpma_conn_req *req;

    fill_block(side.memory.ptr, BLOCKS * BLOCK_SIZE, 9);
    CALL(rpma_conn_req_new(side.peer, args.addr, args.port, cfg, &req));
    for (int i = 0; i < BLOCKS; i++)
        CALL(rpma_conn_req_recv(req, side.mr, offsetof(struct content, reply),
                                sizeof(struct reply), NULL));
    struct rpma_conn *conn = establish(&req, NULL);
    struct rpma_mr_remote *target = offered_memory(conn, NULL);
    struct completions completions = completions_of(conn, NULL, args.variant);

    for (size_t i = 0; i < BLOCKS; i++)
        write_block(&side, &completions, target, i * BLOCK_SIZE);
    printf("client: wrote %d blocks, the server has persisted them\n", BLOCKS);

    CALL(rpma_mr_remote_delete(&target));
    disconnect(&conn);
    CALL(rpma_conn_cfg_delete(&cfg));
    close_side(&side);
    return EXIT_SUCCESS;
}
