// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- offers persistent memory for writes, and makes the written data persistent

#include "common.h"

#include <stdlib.h>

#define USAGE (RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY)

static const struct program program = {
    .example = 4,
    .purpose = "Offers the persistent memory FILE, into which one client writes.",
    .uses_file = true,
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_server_side(&args, BLOCK_SIZE, USAGE);
    struct offer offer = {.peer = side.peer, .mr = side.mr};

    fill_block(side.memory.ptr, BLOCK_SIZE, 0);
    struct rpma_ep *ep = start_listening(side.peer, &args);
    struct rpma_conn *conn = accept_client(ep, NULL, &offer);
    await_disconnect(&conn);

    // Visible data is not persistent yet: it may be in volatile caches of this machine.
    side.memory.persist(side.memory.ptr, BLOCK_SIZE);
    check_block(side.memory.ptr, BLOCK_SIZE, 4);
    printf("server: %zu bytes arrived in %s, all right\n", BLOCK_SIZE,
           memory_kind(&side.memory));

    CALL(rpma_ep_shutdown(&ep));
    close_side(&side);
    return EXIT_SUCCESS;
}
