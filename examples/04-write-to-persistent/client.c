// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- writes into the server's persistent memory and makes the data visible to it

#include "common.h"

#include <stdlib.h>

static const struct program program = {
    .example = 4,
    .purpose = "Writes a block into the server's memory.",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, BLOCK_SIZE, RPMA_MR_USAGE_WRITE_SRC);
    struct rpma_conn *conn = connect_to_server(side.peer, &args, NULL, NULL);
    struct rpma_mr_remote *target = offered_memory(conn, NULL);
    struct rpma_cq *cq;

    // Only the completion of the flush shows that the data is visible, not that of the write.
    fill_block(side.memory.ptr, BLOCK_SIZE, 4);
    CALL(rpma_write(conn, target, 0, side.mr, 0, BLOCK_SIZE, RPMA_F_COMPLETION_ON_ERROR, NULL));
    CALL(rpma_flush(conn, target, 0, BLOCK_SIZE, RPMA_FLUSH_TYPE_VISIBILITY,
                    RPMA_F_COMPLETION_ALWAYS, NULL));
    CALL(rpma_conn_get_cq(conn, &cq));
    await_completion(cq);
    printf("client: wrote %zu bytes, the server's program can see them\n", BLOCK_SIZE);

    CALL(rpma_mr_remote_delete(&target));
    disconnect(&conn);
    close_side(&side);
    return EXIT_SUCCESS;
}
