// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.c -- connects, exchanges a greeting through the private data, disconnects

#include "common.h"

#include <stdlib.h>
#include <string.h>

static const struct program program = {
    .example = 1,
    .purpose = "Connects to the server and disconnects again.",
};

// Contains all calls of a connection's lifetime; the other examples use common/connection.c.
int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    const char greeting[] = "Hello, server!";
    char packed[PRIVATE_DATA_SIZE];
    struct rpma_conn_private_data pdata = {.ptr = packed, .len = sizeof(packed)};
    const void *reply;
    uint32_t size;
    enum rpma_conn_event event;
    struct ibv_context *context;
    struct rpma_peer *peer;
    struct rpma_conn_req *req;
    struct rpma_conn *conn;

    CALL(rpma_utils_get_ibv_context(args.addr, RPMA_UTIL_IBV_CONTEXT_REMOTE, &context));
    CALL(rpma_peer_new(context, &peer));

    CALL(rpma_conn_req_new(peer, args.addr, args.port, NULL, &req));
    CALL(rpma_conn_private_data_pack(NULL, 0, NULL, greeting, sizeof(greeting), &pdata));
    CALL(rpma_conn_req_connect(&req, &pdata, &conn));
    event = next_event(conn);
    if (event != RPMA_CONN_ESTABLISHED)
        fail("%s: is the server listening?", rpma_utils_conn_event_2str(event));

    // The server replies with the same text.
    CALL(rpma_conn_get_private_data(conn, &pdata));
    if (rpma_conn_private_data_unpack(&pdata, NULL, NULL, NULL, &reply, &size) ||
        size != sizeof(greeting) || memcmp(reply, greeting, size))
        fail("the server's private data is not the greeting");
    printf("client: connected, the server's greeting is '%s'\n", (const char *)reply);

    CALL(rpma_conn_disconnect(conn));
    event = next_event(conn);
    if (event != RPMA_CONN_CLOSED)
        fail("%s", rpma_utils_conn_event_2str(event));
    CALL(rpma_conn_delete(&conn));
    CALL(rpma_peer_delete(&peer));
    printf("client: disconnected\n");
    return EXIT_SUCCESS;
}
