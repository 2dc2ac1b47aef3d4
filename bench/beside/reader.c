// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// reader.c -- reads a block again and again, with what librpma had in release 1.3.0
//
//   reader server ADDRESS PORT      offers memory to everybody
//   reader reader ADDRESS PORT      says when the connection was lost, and when it reads again

#include <fcntl.h>
#include <librpma.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// How long it waits for a connection, and between two attempts, as the client of example 15.
enum { PATIENCE_MS = 500, RETRY_MS = 100, BLOCK = 64 };

static char memory[BLOCK];
static struct rpma_peer *peer;
static struct rpma_mr_local *mr;

static void must(int code, const char *what) {
    if (code == 0)
        return;
    fprintf(stderr, "reader: %s: %s\n", what, rpma_err_2str(code));
    exit(EXIT_FAILURE);
}

static void say(const char *what, double milliseconds) {
    printf("%s at %.0f\n", what, milliseconds);
    fflush(stdout);
}

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
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
static void serve(const char *address, const char *port) {
    char descriptor[64];
    size_t size;
    struct rpma_ep *ep = NULL;
    open_all(address, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    must(rpma_mr_get_descriptor_size(mr, &size), "size");
    must(rpma_mr_get_descriptor(mr, descriptor), "descriptor");
    must(rpma_ep_listen(peer, address, port, &ep), "listening");
    puts("listening");
    fflush(stdout);
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
    say("block", milliseconds());
    for (double last = milliseconds(); read_block(conn, src) == 0; last = milliseconds()) {
        const double now = milliseconds();
        if (now - last > 50) // as long as no other read takes
            say("late", now);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    say("lost", milliseconds());
}

static void keep_reading(const char *address, const char *port) {
    open_all(address, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    for (;; nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000}, NULL)) {
        struct rpma_conn_req *req = NULL;
        struct rpma_conn *conn = NULL;
        struct rpma_mr_remote *src = NULL;
        struct rpma_conn_private_data offer = {NULL, 0};
        if (rpma_conn_req_new(peer, address, port, NULL, &req) != 0 ||
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
    if (argc == 4 && strcmp(argv[1], "server") == 0)
        serve(argv[2], argv[3]);
    if (argc == 4 && strcmp(argv[1], "reader") == 0)
        keep_reading(argv[2], argv[3]);
    fputs("usage: reader server|reader ADDRESS PORT\n", stderr);
    return 2;
}
