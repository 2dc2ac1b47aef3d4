// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- accepts one connection, returns the greeting, waits for the disconnection

#include "common.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct program program = {
    .example = 1,
    .purpose = "Accepts one connection and waits until the client ends it.",
};

// Any program can connect: its text is not printed unless it is one.
static bool is_text(const char *text, uint32_t size) {
    if (size < 2 || memchr(text, '\0', size) != text + size - 1)
        return false;
    while (isprint((unsigned char)*text))
        text++;
    return !*text;
}

// Contains all calls of a connection's lifetime; the other examples use common/connection.c.
int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct rpma_conn_private_data pdata;
    enum rpma_conn_event event;
    struct ibv_context *context;
    struct rpma_peer *peer;
    struct rpma_ep *ep;
    struct rpma_conn_req *req;
    struct rpma_conn *conn;
    const void *greeting;
    uint32_t size;
    int ret;

    CALL(rpma_utils_get_ibv_context(args.addr, RPMA_UTIL_IBV_CONTEXT_LOCAL, &context));
    CALL(rpma_peer_new(context, &peer));
    CALL(rpma_ep_listen(peer, args.addr, args.port, &ep));
    printf("server: listening on %s port %s\n", args.addr, args.port);

    // A client may end while it connects: then the server waits for the next one.
    for (;;) {
        ret = rpma_ep_next_incoming(ep, &req);
        if (ret == RPMA_E_NO_EVENT) // the link address of this side has changed
            continue;
        check_call(ret, "rpma_ep_next_incoming");
        CALL(rpma_conn_req_get_private_data(req, &pdata));
        if (rpma_conn_private_data_unpack(&pdata, NULL, NULL, NULL, &greeting, &size) ||
            !is_text(greeting, size)) {
            refuse_request(req, "it sent no greeting");
            continue;
        }
        if (rpma_conn_req_setup(req, NULL)) {
            refuse_request(req, "it has gone");
            continue;
        }
        printf("server: the client's greeting is '%s'\n", (const char *)greeting);
        // The received private data belongs to the request: it is sent back as the reply.
        if (rpma_conn_req_connect(&req, &pdata, &conn))
            continue;
        event = next_event(conn);
        if (event == RPMA_CONN_ESTABLISHED)
            break;
        printf("server: lost the client: %s\n", rpma_utils_conn_event_2str(event));
        CALL(rpma_conn_delete(&conn));
    }

    event = next_event(conn);
    if (event != RPMA_CONN_CLOSED)
        fail("%s", rpma_utils_conn_event_2str(event));
    CALL(rpma_conn_disconnect(conn));
    CALL(rpma_conn_delete(&conn));
    CALL(rpma_ep_shutdown(&ep));
    CALL(rpma_peer_delete(&peer));
    printf("server: the client has disconnected\n");
    return EXIT_SUCCESS;
}
