// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- offers a block of memory to read from

#include "common.h"

#include <stdlib.h>

static const struct program program = {
    .example = 2,
    .purpose = "Offers a block of memory, which one client reads.",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_server_side(&args, BLOCK_SIZE, RPMA_MR_USAGE_READ_SRC);
    struct offer offer = {.peer = side.peer, .mr = side.mr};

    fill_block(side.memory.ptr, BLOCK_SIZE, 2);
    struct rpma_ep *ep = start_listening(side.peer, &args);
    struct rpma_conn *conn = accept_client(ep, NULL, &offer);

    // The client reads without any action of the server.
    await_disconnect(&conn);
    printf("server: the client has disconnected\n");

    CALL(rpma_ep_shutdown(&ep));
    close_side(&side);
    return EXIT_SUCCESS;
}
