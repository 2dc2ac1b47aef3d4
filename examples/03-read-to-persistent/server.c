// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- offers two blocks of memory to read from

#include "common.h"

#include <stdlib.h>

#define SIZE (2 * BLOCK_SIZE)

static const struct program program = {
    .example = 3,
    .purpose = "Offers two blocks of memory, which one client reads.",
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_server_side(&args, SIZE, RPMA_MR_USAGE_READ_SRC);
    struct offer offer = {.peer = side.peer, .mr = side.mr};

    fill_block(side.memory.ptr, SIZE, 3);
    struct rpma_ep *ep = start_listening(side.peer, &args);
    struct rpma_conn *conn = accept_client(ep, NULL, &offer);
    await_disconnect(&conn);
    printf("server: the client has disconnected\n");

    CALL(rpma_ep_shutdown(&ep));
    close_side(&side);
    return EXIT_SUCCESS;
}
