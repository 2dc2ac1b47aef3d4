// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// untrusted_client.c -- a client that requests connections as that of an example does, and then
// does nothing useful:
//   untrusted_client ADDRESS PORT EXAMPLE die       is killed after its request
//   untrusted_client ADDRESS PORT EXAMPLE vanish    is killed after the server has accepted it
//   untrusted_client ADDRESS PORT EXAMPLE silent    does nothing after it is connected
//   untrusted_client ADDRESS PORT EXAMPLE flood     requests many connections, then ends

#include "common.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLOOD 200
#define SIZE (64 * BLOCK_SIZE) // memory for any example

static struct program program = {.purpose = "Disturbs a server.", .number = "EXAMPLE"};

// A client of example 01 sends a text, those of others an offer.
static struct rpma_conn *request(struct side *side, const struct arguments *args) {
    const struct offer offer = {.peer = side->peer, .mr = side->mr, .number = 1};
    char bytes[64];
    struct rpma_conn_private_data text = {.ptr = bytes, .len = sizeof(bytes)};
    struct rpma_conn_req *req;
    struct rpma_conn *conn;
    CALL(rpma_conn_req_new(side->peer, args->addr, args->port, NULL, &req));
    if (program.example != 1) {
        CALL(begin_connection(&req, &offer, &conn));
        return conn;
    }
    CALL(rpma_conn_private_data_pack(NULL, 0, NULL, "untrusted", sizeof("untrusted"), &text));
    CALL(rpma_conn_req_connect(&req, &text, &conn));
    return conn;
}

int main(int argc, char *argv[]) {
    if (argc != 5)
        return EXIT_FAILURE;
    program.example = (unsigned char)atoi(argv[3]);
    struct arguments args = read_arguments(argc - 1, argv, &program);
    CALL(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED));
    const bool is_flood = !strcmp(argv[4], "flood");
    struct side side = open_client_side(
        &args, SIZE, RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND);
    struct rpma_conn *conns[FLOOD];
    for (int i = 0; i < (is_flood ? FLOOD : 1); i++)
        conns[i] = request(&side, &args);
    if (!strcmp(argv[4], "vanish")) { // before it takes the event: nothing is established
        struct pollfd accepted = {.events = POLLIN};
        CALL(rpma_conn_get_event_fd(conns[0], &accepted.fd));
        if (poll(&accepted, 1, -1) != 1)
            fail("poll");
    }
    if (!strcmp(argv[4], "die") || !strcmp(argv[4], "vanish"))
        raise(SIGKILL);
    for (int i = 0; i < (is_flood ? FLOOD : 1); i++) {
        const enum rpma_conn_event event = next_event(conns[i]);
        if (!is_flood && event != RPMA_CONN_ESTABLISHED)
            fail("%s", rpma_utils_conn_event_2str(event));
    }
    printf("untrusted_client: %s\n", argv[4]);
    if (!is_flood)
        pause();
    for (int i = 0; i < FLOOD; i++)
        CALL(rpma_conn_delete(&conns[i]));
    close_side(&side);
    return EXIT_SUCCESS;
}
