// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.c -- the cost of one more connection on both sides, over the provider that does nothing
//
// Prints lines of side, figure and value, separated by tabs. The first connection of a peer is
// not counted: it may prepare objects that all others share.

#include <librpma.h>

#include "../provider/provider.h"
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>

static const char *address = "127.0.0.1";
static const char *port = "7204";
static struct rpma_peer *peer;
static struct rpma_ep *endpoint;

static void must(int ret, const char *call) {
    if (ret == 0)
        return;
    fprintf(stderr, "connection: %s: %s\n", call, rpma_err_2str(ret));
    exit(EXIT_FAILURE);
}

static struct rpma_conn_req *request(void) {
    struct rpma_conn_req *req;
    must(rpma_conn_req_new(peer, address, port, NULL, &req), "rpma_conn_req_new");
    return req;
}

static struct rpma_conn_req *next_request(void) {
    struct rpma_conn_req *req;
    must(rpma_ep_next_conn_req(endpoint, NULL, &req), "rpma_ep_next_conn_req");
    return req;
}

static struct rpma_conn *connect_one(struct rpma_conn_req *(*next)(void)) {
    struct rpma_conn_req *req = next();
    struct rpma_conn *conn;
    must(rpma_conn_req_connect(&req, NULL, &conn), "rpma_conn_req_connect");
    return conn;
}

static void establish(struct rpma_conn *conn) {
    enum rpma_conn_event event;
    must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
}

static void print_calls(const char *side, const char *step) {
    printf("%s\t%s list\t", side, step);
    for (const struct provider_count *entry = provider_counts(); entry->call != NULL; entry++)
        for (unsigned i = 0; i < entry->times; i++)
            printf("%s ", entry->call);
    puts("");
}

static void measure(const char *side, struct rpma_conn_req *(*next)(void)) {
    struct rpma_conn *first = connect_one(next);
    establish(first);

    provider_reset();
    memory_reset();
    struct rpma_conn *conn = connect_one(next);
    print_calls(side, "connect");
    establish(conn);
    printf("%s\tmappings\t%u\n", side, memory.mappings);
    printf("%s\tallocations\t%u\n", side, memory.allocations);
    printf("%s\tbytes\t%zu\n", side, memory_bytes());

    provider_reset();
    must(rpma_conn_delete(&conn), "rpma_conn_delete");
    print_calls(side, "delete");
    printf("%s\tbytes left\t%zu\n", side, memory_bytes());
    must(rpma_conn_delete(&first), "rpma_conn_delete");
}

int main(void) {
    // stdout must not allocate its buffer while allocations are counted.
    static char buffer[BUFSIZ];
    setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));

    struct ibv_context *device;
    must(rpma_utils_get_ibv_context(address, RPMA_UTIL_IBV_CONTEXT_REMOTE, &device),
         "rpma_utils_get_ibv_context");
    must(rpma_peer_new(device, &peer), "rpma_peer_new");
    must(rpma_ep_listen(peer, address, port, &endpoint), "rpma_ep_listen");
    measure("active", request);
    measure("passive", next_request);
    return 0;
}
