// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- offers persistent memory, and shows that not all visible data is persistent

#include "common.h"

#include <stdlib.h>

#define USAGE                                                        \
    (RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | \
     RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

static const struct program program = {
    .example = 17,
    .purpose = "Offers the persistent memory FILE, into which one client writes two blocks.",
    .uses_file = true,
    .direct_write_option = true,
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_server_side(&args, 2 * BLOCK_SIZE, USAGE);
    struct offer offer = {.peer = side.peer,
                          .mr = side.mr,
                          .direct_write = has_direct_write(&args, &side.memory)};

    struct rpma_ep *ep = start_listening(side.peer, &args);
    struct rpma_conn *conn = accept_client(ep, NULL, &offer);
    await_disconnect(&conn);

    check_block(side.memory.ptr, BLOCK_SIZE, 1);
    check_block(side.memory.ptr + BLOCK_SIZE, BLOCK_SIZE, 2);
    printf("server: sees both blocks in %s\n", memory_kind(&side.memory));

    CALL(rpma_ep_shutdown(&ep));
    close_side(&side);
    return EXIT_SUCCESS;
}
