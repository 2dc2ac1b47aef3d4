// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rpma.c -- the write and its completion by librpma; runs on the original too

#include "beside.h"
#include "side.h"

static struct side side;
static struct target target;

void serve_one(const char *address, const char *port, const char *how) {
    (void)how;
    side = open_side(address, port, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    struct rpma_ep *endpoint;
    must(rpma_ep_listen(side.peer, address, port, &endpoint), "rpma_ep_listen");
    puts("listening");
    fflush(stdout);
    struct rpma_conn *conn = accept_next(&side, endpoint, NULL, 0);
    enum rpma_conn_event event;
    do
        must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
    while (event == RPMA_CONN_ESTABLISHED);
    (void)rpma_conn_disconnect(conn);
    must(rpma_conn_delete(&conn), "rpma_conn_delete");
    must(rpma_ep_shutdown(&endpoint), "rpma_ep_shutdown");
}

void connect_client(const char *address, const char *port, const char *how) {
    (void)how;
    side = open_side(address, port, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    target = connect_to_target(&side, NULL);
}

void disconnect_client(void) {
    must(rpma_mr_remote_delete(&target.remote), "rpma_mr_remote_delete");
    leave(target.conn);
}

void counted_write(void) {
    must(rpma_write(target.conn, target.remote, 0, side.mr, 0, WRITE_BYTES,
                    RPMA_F_COMPLETION_ALWAYS, NULL),
         "rpma_write");
}

void counted_completion(void) {
    struct ibv_wc wc;
    must(rpma_cq_get_wc(target.cq, 1, &wc, NULL), "rpma_cq_get_wc");
    if (wc.status != IBV_WC_SUCCESS)
        give_up(ibv_wc_status_str(wc.status));
}

// rpma_cq_wait() requests the next event itself.
void ask_for_event(void) {}

void wait_for_event(void) {
    must(rpma_cq_wait(target.cq), "rpma_cq_wait");
}
