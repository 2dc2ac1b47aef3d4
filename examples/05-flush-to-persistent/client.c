// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- writes into the server's persistent memory and flushes the data persistently

#include "common.h"

#include <stdlib.h>

static const struct program program = {
    .example = 5,
    .purpose = "Writes a block into the server's persistent memory and flushes it.",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, BLOCK_SIZE, RPMA_MR_USAGE_WRITE_SRC);
    struct rpma_conn *conn = connect_to_server(side.peer, &args, NULL, NULL);
    struct rpma_cq *cq;
    bool direct_write;
    struct rpma_mr_remote *target = offered_memory(conn, &direct_write);

    // A persistent flush is rejected unless the server states direct write to PMem.
    enum rpma_flush_type type =
        direct_write ? RPMA_FLUSH_TYPE_PERSISTENT : RPMA_FLUSH_TYPE_VISIBILITY;
    fill_block(side.memory.ptr, BLOCK_SIZE, 5);
    const struct rpma_work work[] = {
        {.type = RPMA_WORK_WRITE,
         .remote = target,
         .local = {.mr = side.mr, .len = BLOCK_SIZE},
         .flags = RPMA_F_COMPLETION_ON_ERROR},
        {.type = RPMA_WORK_FLUSH,
         .remote = target,
         .flush_type = type,
         .flush_len = BLOCK_SIZE,
         .flags = RPMA_F_COMPLETION_ALWAYS},
    };
    CALL(rpma_post(conn, work, 2, NULL));
    CALL(rpma_conn_get_cq(conn, &cq));
    await_completion(cq);
    printf("client: wrote %zu bytes and flushed them: they are %s\n", BLOCK_SIZE,
           describe_persistence(direct_write));

    CALL(rpma_mr_remote_delete(&target));
    disconnect(&conn);
    close_side(&side);
    return EXIT_SUCCESS;
}
