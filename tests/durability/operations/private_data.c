// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// private_data.c -- a connection that only carries private data, which both sides compare

#include "common.h"
#include "operations.h"
#include "random.h"

#include <string.h>

// Fills some bytes that are no offer, at times with zeros.
static struct rpma_conn_private_data make_data(char *bytes, bool may_be_zeros) {
    const bool are_zeros = may_be_zeros && below(2);
    struct rpma_conn_private_data data = {bytes, (uint8_t)(1 + below(PRIVATE_DATA_SIZE))};
    do
        for (unsigned i = 0; i < data.len; i++)
            bytes[i] = (char)(are_zeros ? 0 : 1 + below(255));
    while (is_offer(&data, NULL));
    return data;
}

static enum rpma_conn_event await_end(struct rpma_conn **conn) {
    enum rpma_conn_event event;
    (void)rpma_conn_disconnect(*conn);
    event = next_event(*conn);
    CALL(rpma_conn_delete(conn));
    return event;
}

void send_private_data(struct rpma_peer *peer, const struct arguments *args) {
    char bytes[PRIVATE_DATA_SIZE];
    struct rpma_conn_private_data data = make_data(bytes, true);
    struct rpma_conn_req *req;
    struct rpma_conn *conn;
    report_private_data(false, &data);
    CALL(rpma_conn_req_new(peer, args->addr, args->port, NULL, &req));
    CALL(rpma_conn_req_connect(&req, &data, &conn));
    const enum rpma_conn_event event = next_event(conn);
    CALL(rpma_conn_get_private_data(conn, &data));
    if (event == RPMA_CONN_ESTABLISHED || (event == RPMA_CONN_REJECTED && data.len > 0))
        check_private_data(true, &data);
    else // also a rejection by a server that does not listen
        fail("no private data from the server");
    if (event == RPMA_CONN_REJECTED)
        CALL(rpma_conn_delete(&conn));
    else if (await_end(&conn) != RPMA_CONN_CLOSED)
        fail("the connection does not end");
}

// A rejection without data has zeros, so those of a program are lost. The client may have gone.
void reply_private_data(struct rpma_conn_req *req, bool is_set_up) {
    char bytes[PRIVATE_DATA_SIZE];
    const bool is_accepted = below(2);
    struct rpma_conn_private_data data;
    struct rpma_conn *conn;
    CALL(rpma_conn_req_get_private_data(req, &data));
    check_private_data(false, &data);
    data = make_data(bytes, is_accepted);
    report_private_data(true, &data);
    if (!is_accepted)
        (void)rpma_conn_req_reject(&req, &data);
    else if (!is_set_up && rpma_conn_req_setup(req, NULL))
        (void)rpma_conn_req_delete(&req);
    else if (!rpma_conn_req_connect(&req, &data, &conn)) {
        if (next_event(conn) == RPMA_CONN_ESTABLISHED)
            (void)next_event(conn);
        (void)rpma_conn_disconnect(conn);
        CALL(rpma_conn_delete(&conn));
    }
}
