// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- invalid clients. They send a server of example 15 a wrong number of the client,
// too little memory, or a request for a block or slot that does not exist.

#include "common.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

// Defined in mover.h of example 15.
enum { STORE_BLOCKS = 32, DEPTH = 8 };

static const struct {
    unsigned number; // the number of the client
    size_t offered;  // bytes of its memory
    uint32_t block, slot;
} forms[] = {
    {0, DEPTH *BLOCK_SIZE, 0, 0},
    {1, DEPTH *BLOCK_SIZE - 1, 0, 0},
    {1, DEPTH *BLOCK_SIZE, STORE_BLOCKS, 0},
    {1, DEPTH *BLOCK_SIZE, 0, DEPTH},
};

static const struct program program = {
    .example = 15,
    .purpose = "Sends an invalid request to a server.",
    .number = "FORM",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, DEPTH * BLOCK_SIZE, RPMA_MR_USAGE_SEND);
    const unsigned form = args.number - 1;
    const uint32_t request[] = {0, htonl(forms[form].block), htonl(forms[form].slot)};
    struct rpma_mr_local *mr;
    CALL(rpma_mr_reg(side.peer, side.memory.ptr, forms[form].offered, RPMA_MR_USAGE_WRITE_DST,
                     &mr));
    const struct offer offer = {.peer = side.peer, .mr = mr, .number = forms[form].number};
    struct rpma_conn *conn = connect_to_server(side.peer, &args, NULL, &offer);
    memcpy(side.memory.ptr, request, sizeof(request));
    CALL(rpma_send(conn, side.mr, 0, sizeof(request), RPMA_F_COMPLETION_ON_ERROR, NULL));
    await_disconnect(&conn); // the server disconnects
    CALL(rpma_mr_dereg(&mr));
    close_side(&side);
    return EXIT_SUCCESS;
}
