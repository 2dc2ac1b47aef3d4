// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- offers persistent memory that the client writes and flushes

#include "common.h"

#include <stdlib.h>

#define USAGE                                                        \
    (RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | \
     RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

static const struct program program = {
    .example = 5,
    .purpose = "Offers the persistent memory FILE, which one client writes and flushes.",
    .uses_file = true,
    .direct_write_option = true,
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_server_side(&args, BLOCK_SIZE, USAGE);
    struct offer offer = {.peer = side.peer,
                          .mr = side.mr,
                          .direct_write = has_direct_write(&args, &side.memory)};

    fill_block(side.memory.ptr, BLOCK_SIZE, 0);
    struct rpma_ep *ep = start_listening(side.peer, &args);
    struct rpma_conn *conn = accept_client(ep, NULL, &offer);
    await_disconnect(&conn);

    // The server persists no data: the client's flush has done this.
    check_block(side.memory.ptr, BLOCK_SIZE, 5);
    printf("server: %zu bytes arrived in %s, all right\n", BLOCK_SIZE,
           memory_kind(&side.memory));

    CALL(rpma_ep_shutdown(&ep));
    close_side(&side);
    return EXIT_SUCCESS;
}
