// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- requests that a server of example 09 persists memory that it has not offered

#include "common.h"

#include <endian.h>
#include <stdlib.h>

// Defined in messages.h of example 09.
enum { BLOCKS = 4 };
struct request {
    uint64_t offset, size;
};

// The end of the first three ranges exceeds 64 bits.
static const struct request forms[] = {
    {UINT64_MAX - BLOCK_SIZE + 1, BLOCK_SIZE},
    {BLOCK_SIZE, UINT64_MAX - BLOCK_SIZE + 1},
    {UINT64_MAX, UINT64_MAX},
    {BLOCKS * BLOCK_SIZE, 1},
    {0, BLOCKS *BLOCK_SIZE + 1},
};

static const struct program program = {
    .example = 9,
    .purpose = "Sends an invalid request to a server.",
    .number = "FORM",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_client_side(&args, sizeof(struct request), RPMA_MR_USAGE_SEND);
    struct request *request = (void *)side.memory.ptr;
    const struct request *form = &forms[args.number - 1];
    *request = (struct request){htobe64(form->offset), htobe64(form->size)};
    struct rpma_conn *conn = connect_to_server(side.peer, &args, NULL, NULL);
    CALL(rpma_send(conn, side.mr, 0, sizeof(*request), RPMA_F_COMPLETION_ON_ERROR, NULL));
    await_disconnect(&conn); // the server disconnects
    close_side(&side);
    return EXIT_SUCCESS;
}
