// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- reads the server's memory into local persistent memory

#include "common.h"

#include <stdlib.h>

#define SIZE (2 * BLOCK_SIZE)

static const struct program program = {
    .example = 3,
    .purpose = "Reads two blocks of the server's memory into the persistent memory FILE.",
    .uses_file = true,
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, SIZE, RPMA_MR_USAGE_READ_DST);
    struct rpma_conn *conn = connect_to_server(side.peer, &args, NULL, NULL);
    struct rpma_mr_remote *source = offered_memory(conn, NULL);
    struct rpma_cq *cq;

    // Two reads, one wait: the first has a completion only if it fails.
    CALL(rpma_read(conn, side.mr, 0, source, 0, BLOCK_SIZE, RPMA_F_COMPLETION_ON_ERROR, NULL));
    CALL(rpma_read(conn, side.mr, BLOCK_SIZE, source, BLOCK_SIZE, BLOCK_SIZE,
                   RPMA_F_COMPLETION_ALWAYS, NULL));
    CALL(rpma_conn_get_cq(conn, &cq));
    await_completion(cq);

    // The data was written by this machine's own device: this machine makes it persistent.
    side.memory.persist(side.memory.ptr, SIZE);
    check_block(side.memory.ptr, SIZE, 3);
    printf("client: read %zu bytes into %s, all right\n", SIZE, memory_kind(&side.memory));

    CALL(rpma_mr_remote_delete(&source));
    disconnect(&conn);
    close_side(&side);
    return EXIT_SUCCESS;
}
