// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- writes two blocks into the server's persistent memory and flushes the first

#include "common.h"

#include <stdlib.h>

static const struct program program = {
    .example = 17,
    .purpose = "Writes two blocks into the server's persistent memory and flushes the first.",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, 2 * BLOCK_SIZE, RPMA_MR_USAGE_WRITE_SRC);
    struct rpma_conn *conn = connect_to_server(side.peer, &args, NULL, NULL);
    struct rpma_cq *cq;
    bool direct_write;
    struct rpma_mr_remote *target = offered_memory(conn, &direct_write);
    enum rpma_flush_type type =
        direct_write ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY;
    CALL(rpma_conn_get_cq(conn, &cq));

    fill_block(side.memory.ptr, BLOCK_SIZE, 1);
    CALL(rpma_write(conn, target, 0, side.mr, 0, BLOCK_SIZE, RPMA_F_COMPLETION_ON_ERROR, NULL));
    CALL(rpma_flush(conn, target, 0, BLOCK_SIZE, type, RPMA_F_COMPLETION_ALWAYS, NULL));
    await_completion(cq);
    printf("client: wrote block 1 and flushed it: it is %s\n",
           describe_persistence(direct_write));

    fill_block(side.memory.ptr + BLOCK_SIZE, BLOCK_SIZE, 2);
    CALL(rpma_write(conn, target, BLOCK_SIZE, side.mr, BLOCK_SIZE, BLOCK_SIZE,
                    RPMA_F_COMPLETION_ALWAYS, NULL));
    await_completion(cq);
    printf("client: wrote block 2 and did not flush it\n");

    CALL(rpma_mr_remote_delete(&target));
    disconnect(&conn);
    close_side(&side);
    return EXIT_SUCCESS;
}
