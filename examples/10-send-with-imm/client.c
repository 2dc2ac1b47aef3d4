// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- sends messages with their checksum as immediate data

#include "common.h"

#include <stdlib.h>

static const struct program program = {
    .example = 10,
    .purpose = "Sends a block and an empty message, each with its checksum as immediate data.",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, BLOCK_SIZE, RPMA_MR_USAGE_SEND);
    struct rpma_conn *conn = connect_to_server(side.peer, &args, NULL, NULL);
    struct rpma_cq *cq;

    fill_block(side.memory.ptr, BLOCK_SIZE, 10);
    CALL(rpma_send_with_imm(conn, side.mr, 0, BLOCK_SIZE, RPMA_F_COMPLETION_ON_ERROR,
                            checksum(side.memory.ptr, BLOCK_SIZE), NULL));
    CALL(rpma_send_with_imm(conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, checksum("", 0), NULL));

    // If a client disconnects before its last send has completed, the message may be lost.
    CALL(rpma_conn_get_cq(conn, &cq));
    await_completion(cq);
    printf("client: sent a block and an empty message with immediate data\n");

    disconnect(&conn);
    close_side(&side);
    return EXIT_SUCCESS;
}
