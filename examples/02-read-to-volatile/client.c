// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- reads the server's memory into local memory

#include "common.h"

#include <stdlib.h>

static const struct program program = {
    .example = 2,
    .purpose = "Reads a block of the server's memory.",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, BLOCK_SIZE, RPMA_MR_USAGE_READ_DST);
    struct rpma_conn *conn = connect_to_server(side.peer, &args, NULL, NULL);
    struct rpma_mr_remote *source = offered_memory(conn, NULL);
    struct rpma_cq *cq;

    CALL(rpma_read(conn, side.mr, 0, source, 0, BLOCK_SIZE, RPMA_F_COMPLETION_ALWAYS, NULL));
    CALL(rpma_conn_get_cq(conn, &cq));
    await_completion(cq);
    check_block(side.memory.ptr, BLOCK_SIZE, 2);
    printf("client: read %zu bytes, all right: %.31s\n", BLOCK_SIZE, side.memory.ptr);

    CALL(rpma_mr_remote_delete(&source));
    disconnect(&conn);
    close_side(&side);
    return EXIT_SUCCESS;
}
