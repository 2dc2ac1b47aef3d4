// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rpma.c -- the write and its completion by librpma; runs on the original too

#include "beside.h"
#include "side.h"

static struct side side;
static struct rpma_conn *conn;
static struct rpma_cq *cq;
static struct rpma_mr_remote *remote;

static struct rpma_conn *accept_one(struct rpma_ep *endpoint) {
    char descriptor[64];
    size_t size;
    must(rpma_mr_get_descriptor_size(side.mr, &size), "rpma_mr_get_descriptor_size");
    must(rpma_mr_get_descriptor(side.mr, descriptor), "rpma_mr_get_descriptor");
    const struct rpma_conn_private_data data = {descriptor, (uint8_t)size};
    struct rpma_conn_req *req;
    struct rpma_conn *accepted;
    must(rpma_ep_next_conn_req(endpoint, NULL, &req), "rpma_ep_next_conn_req");
    must(rpma_conn_req_connect(&req, &data, &accepted), "rpma_conn_req_connect");
    return accepted;
}

void serve_one(const char *address, const char *port, const char *how) {
    (void)how;
    side = open_side(address, port, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    struct rpma_ep *endpoint;
    must(rpma_ep_listen(side.peer, address, port, &endpoint), "rpma_ep_listen");
    puts("listening");
    fflush(stdout);
    conn = accept_one(endpoint);
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
    conn = connect_to(&side, NULL);
    must(rpma_conn_get_cq(conn, &cq), "rpma_conn_get_cq");
    struct rpma_conn_private_data data;
    must(rpma_conn_get_private_data(conn, &data), "rpma_conn_get_private_data");
    must(rpma_mr_remote_from_descriptor(data.ptr, data.len, &remote),
         "rpma_mr_remote_from_descriptor");
}

void disconnect_client(void) {
    must(rpma_mr_remote_delete(&remote), "rpma_mr_remote_delete");
    leave(conn);
}

void counted_write(void) {
    must(rpma_write(conn, remote, 0, side.mr, 0, WRITE_BYTES, RPMA_F_COMPLETION_ALWAYS, NULL),
         "rpma_write");
}

void counted_completion(void) {
    struct ibv_wc wc;
    must(rpma_cq_get_wc(cq, 1, &wc, NULL), "rpma_cq_get_wc");
    if (wc.status != IBV_WC_SUCCESS)
        give_up(ibv_wc_status_str(wc.status));
}

// rpma_cq_wait() requests the next event itself.
void ask_for_event(void) {}

void wait_for_event(void) {
    must(rpma_cq_wait(cq), "rpma_cq_wait");
}
