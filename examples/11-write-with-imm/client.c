// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- writes into the server's memory and notifies the server by immediate data

#include "common.h"

#include <stdlib.h>

static const struct program program = {
    .example = 11,
    .purpose = "Writes a block with its checksum as immediate data.",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, BLOCK_SIZE, RPMA_MR_USAGE_WRITE_SRC);
    struct rpma_conn *conn = connect_to_server(side.peer, &args, NULL, NULL);
    struct rpma_mr_remote *target = offered_memory(conn, NULL);
    struct rpma_cq *cq;

    fill_block(side.memory.ptr, BLOCK_SIZE, 11);
    uint32_t imm = checksum(side.memory.ptr, BLOCK_SIZE);
    CALL(rpma_write_with_imm(conn, target, 0, side.mr, 0, BLOCK_SIZE, RPMA_F_COMPLETION_ALWAYS,
                             imm, NULL));
    CALL(rpma_conn_get_cq(conn, &cq));
    await_completion(cq);
    printf("client: wrote %zu bytes with immediate data 0x%08x\n", BLOCK_SIZE, imm);

    CALL(rpma_mr_remote_delete(&target));
    disconnect(&conn);
    close_side(&side);
    return EXIT_SUCCESS;
}
