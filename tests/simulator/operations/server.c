// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- offers persistent memory, and never initialises or persists it

#include "common.h"
#include "operations.h"

#include <stdlib.h>

enum { RECEIVES = 8 }; // for the client's writes with immediate data

static const struct program program = {
    .purpose = "Offers FILE, which a client changes by every operation.",
    .uses_file = true,
    .direct_write_option = true,
};

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct side side = open_server_side(&args, AREAS * AREA,
                                        RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST |
                                            RPMA_MR_USAGE_ATOMIC | RPMA_MR_USAGE_RECV |
                                            RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                                            RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT);
    struct offer offer = {.peer = side.peer,
                          .mr = side.mr,
                          .direct_write = has_direct_write(&args, &side.memory)};
    struct rpma_ep *ep = start_listening(side.peer, &args);
    struct rpma_conn *conn = NULL;
    while (!conn) {
        struct rpma_conn_req *req = next_request(ep, NULL);
        for (int i = 0; i < RECEIVES; i++)
            CALL(rpma_conn_req_recv(req, side.mr, 0, 8, NULL));
        conn = try_accept(&req, &offer);
    }
    await_disconnect(&conn);

    CALL(rpma_ep_shutdown(&ep));
    close_side(&side);
    return EXIT_SUCCESS;
}
