// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rpma.c -- a write and its completion, and a reader that goes on after an outage, with what
// librpma had in release 1.3.0; runs on the original too
//
//   rpma server ADDRESS PORT        offers memory to everybody
//   rpma writer ADDRESS PORT TIMES  writes one block at a time, for callgrind
//   rpma reader ADDRESS PORT        says when the connection was lost, and when it reads again

#include "scene.h"
#include "side.h"

#include <poll.h>

static struct side side;
static struct target target;

// Takes no events: a connection that has ended is of no concern here.
static void serve_everybody(char **argv) {
    side = open_side(argv[0], argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL);
    struct rpma_ep *endpoint;
    must(rpma_ep_listen(side.peer, side.address, side.port, &endpoint), "rpma_ep_listen");
    say("listening");
    for (;;)
        (void)accept_next(&side, endpoint, NULL, 0);
}

// ---- a write and its completion ------------------------------------------------------------

static COUNTED void counted_write(void) {
    must(rpma_write(target.conn, target.remote, 0, side.mr, 0, WRITE_BYTES,
                    RPMA_F_COMPLETION_ALWAYS, NULL),
         "rpma_write");
}

static COUNTED void counted_completion(void) {
    struct ibv_wc wc;
    must(rpma_cq_get_wc(target.cq, 1, &wc, NULL), "rpma_cq_get_wc");
    if (wc.status != IBV_WC_SUCCESS)
        give_up(ibv_wc_status_str(wc.status));
}

static void write_and_wait(void) {
    counted_write();
    must(rpma_cq_wait(target.cq), "rpma_cq_wait"); // requests the next event itself
    counted_completion();
}

static void write_blocks(char **argv) {
    side = open_side(argv[0], argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE);
    target = connect_to_target(&side, NULL);
    run_laps(write_and_wait, number(argv[2]));
}

// ---- a reader ------------------------------------------------------------------------------

static bool is_up_in_time(struct rpma_conn *conn) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    struct pollfd ready = {.events = POLLIN};
    must(rpma_conn_get_event_fd(conn, &ready.fd), "rpma_conn_get_event_fd");
    return poll(&ready, 1, PATIENCE_MS) == 1 && rpma_conn_next_event(conn, &event) == 0 &&
           event == RPMA_CONN_ESTABLISHED;
}

static int read_block(void) {
    struct ibv_wc wc = {0};
    int code = rpma_read(target.conn, side.mr, 0, target.remote, 0, READ_BYTES,
                         RPMA_F_COMPLETION_ALWAYS, NULL);
    if (code == 0)
        code = rpma_cq_wait(target.cq);
    if (code == 0)
        code = rpma_cq_get_wc(target.cq, 1, &wc, NULL);
    return code || wc.status != IBV_WC_SUCCESS ? -1 : 0;
}

static void keep_reading(char **argv) {
    side = open_side(argv[0], argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE);
    for (;; sleep_ms(RETRY_MS)) {
        struct rpma_conn_req *req = NULL;
        struct rpma_conn_private_data offer = {NULL, 0};
        if (rpma_conn_req_new(side.peer, side.address, side.port, NULL, &req) != 0 ||
            rpma_conn_req_connect(&req, NULL, &target.conn) != 0)
            continue;
        must(rpma_conn_get_cq(target.conn, &target.cq), "rpma_conn_get_cq");
        if (is_up_in_time(target.conn) &&
            rpma_conn_get_private_data(target.conn, &offer) == 0 &&
            rpma_mr_remote_from_descriptor(offer.ptr, offer.len, &target.remote) == 0)
            read_blocks(read_block);
        (void)rpma_mr_remote_delete(&target.remote);
        (void)rpma_conn_delete(&target.conn);
    }
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {{"server", 2, 2, serve_everybody},
                                          {"writer", 3, 3, write_blocks},
                                          {"reader", 2, 2, keep_reading},
                                          {0}};
    return run_scene(scenes, argc, argv);
}
