// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// reader.c -- reads a block again and again, with what librpma had in release 1.3.0
//
//   reader server ADDRESS PORT      offers memory to everybody
//   reader reader ADDRESS PORT      says when the connection was lost, and when it reads again

#include "scene.h"

#include <librpma.h>
#include <poll.h>

static char memory[BLOCK];
static struct rpma_peer *peer;
static struct rpma_mr_local *mr;

static void must(int code, const char *what) {
    if (code == 0)
        return;
    fprintf(stderr, "reader: %s: %s\n", what, rpma_err_2str(code));
    exit(EXIT_FAILURE);
}

static void open_all(const char *address, enum rpma_util_ibv_context_type type) {
    struct ibv_context *device = NULL;
    must(rpma_utils_get_ibv_context(address, type, &device), "device");
    must(rpma_peer_new(device, &peer), "peer");
    must(rpma_mr_reg(peer, memory, sizeof(memory),
                     RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST, &mr),
         "memory");
}

// Takes no events: a connection that has ended is of no concern here.
static void serve(char **argv) {
    char descriptor[64];
    size_t size;
    struct rpma_ep *ep = NULL;
    open_all(argv[0], RPMA_UTIL_IBV_CONTEXT_LOCAL);
    must(rpma_mr_get_descriptor_size(mr, &size), "size");
    must(rpma_mr_get_descriptor(mr, descriptor), "descriptor");
    must(rpma_ep_listen(peer, argv[0], argv[1], &ep), "listening");
    say("listening");
    for (;;) {
        const struct rpma_conn_private_data offer = {descriptor, (uint8_t)size};
        struct rpma_conn_req *req = NULL;
        struct rpma_conn *conn = NULL;
        if (rpma_ep_next_conn_req(ep, NULL, &req) == 0)
            (void)rpma_conn_req_connect(&req, &offer, &conn);
    }
}

// 0 if the connection is there within the patience.
static int await(struct rpma_conn *conn) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    struct pollfd ready = {.events = POLLIN};
    must(rpma_conn_get_event_fd(conn, &ready.fd), "descriptor");
    return poll(&ready, 1, PATIENCE_MS) == 1 && rpma_conn_next_event(conn, &event) == 0 &&
                   event == RPMA_CONN_ESTABLISHED
               ? 0
               : -1;
}

static int read_block(struct rpma_conn *conn, struct rpma_mr_remote *src) {
    struct rpma_cq *cq = NULL;
    struct ibv_wc wc = {0};
    must(rpma_conn_get_cq(conn, &cq), "completion queue");
    int code = rpma_read(conn, mr, 0, src, 0, BLOCK, RPMA_F_COMPLETION_ALWAYS, NULL);
    if (code == 0)
        code = rpma_cq_wait(cq);
    if (code == 0)
        code = rpma_cq_get_wc(cq, 1, &wc, NULL);
    return code || wc.status != IBV_WC_SUCCESS ? -1 : 0;
}

// Reads until a read fails.
static void read_blocks(struct rpma_conn *conn, struct rpma_mr_remote *src) {
    say("block at %.0f", milliseconds());
    for (double last = milliseconds(); read_block(conn, src) == 0; last = milliseconds()) {
        const double now = milliseconds();
        if (now - last > LATE_MS)
            say("late at %.0f", now);
        sleep_ms(1);
    }
    say("lost at %.0f", milliseconds());
}

static void keep_reading(char **argv) {
    open_all(argv[0], RPMA_UTIL_IBV_CONTEXT_REMOTE);
    for (;; sleep_ms(RETRY_MS)) {
        struct rpma_conn_req *req = NULL;
        struct rpma_conn *conn = NULL;
        struct rpma_mr_remote *src = NULL;
        struct rpma_conn_private_data offer = {NULL, 0};
        if (rpma_conn_req_new(peer, argv[0], argv[1], NULL, &req) != 0 ||
            rpma_conn_req_connect(&req, NULL, &conn) != 0)
            continue;
        if (await(conn) == 0 && rpma_conn_get_private_data(conn, &offer) == 0 &&
            rpma_mr_remote_from_descriptor(offer.ptr, offer.len, &src) == 0 &&
            read_block(conn, src) == 0)
            read_blocks(conn, src);
        (void)rpma_mr_remote_delete(&src);
        (void)rpma_conn_delete(&conn);
    }
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"server", 2, 2, serve}, {"reader", 2, 2, keep_reading}, {0}};
    return run_scene(scenes, argc, argv);
}
