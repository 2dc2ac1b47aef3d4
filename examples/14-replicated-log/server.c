// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- keeps a log in persistent memory for one client at a time, until it is stopped

#include "log.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

#define USAGE                                                                                 \
    (RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | \
     RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT)

static const struct program program = {
    .does = "Keeps log number LOG in the persistent memory FILE, to which one client appends.",
    .number = "LOG",
    .takes_file = true,
    .states_direct_write = true,
};

static struct rpma_conn *client;

// A log that is there already goes on. The signature is the last thing that a new one gets.
static void open_log(const struct memory *memory, struct log_header *header) {
    if (!log_tail(header)) {
        *header = (struct log_header){.tail = htole64(LOG_BEGIN)};
        memory->persist(header, sizeof(*header));
        memcpy(header->signature, LOG_SIGNATURE, sizeof(header->signature));
        memory->persist(header, sizeof(*header));
    }
}

static void check_log(const struct log_header *header) {
    size_t tail = log_tail(header);
    struct extent extent = read_log((const char *)header, tail);
    if (extent.end != tail)
        fail("the log is damaged behind record %llu", (unsigned long long)extent.count);
    printf("server: the log has %llu records, all right\n", (unsigned long long)extent.count);
}

/*
 * The newest client has the log to itself: with its connection an older one, which may still
 * believe in itself, loses the access to the memory. Whatever a client does wrong is no reason
 * to end.
 */
static void take_request(struct rpma_ep *ep, struct offer *offer) {
    struct rpma_conn_private_data pdata = {.ptr = offer->bytes, .len = offer->size};
    struct rpma_conn_req *req;
    if (rpma_ep_next_conn_req(ep, NULL, &req))
        return;
    (void)rpma_conn_delete(&client);
    if (rpma_conn_req_connect(&req, &pdata, &client))
        printf("server: a client went away before it was connected\n");
}

static void take_event(void) {
    enum rpma_conn_event event;
    if (!rpma_conn_next_event(client, &event) && event != RPMA_CONN_ESTABLISHED)
        (void)rpma_conn_delete(&client);
}

// A signal to stop becomes readable, like everything else that the server waits for.
static int open_signals(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_CLOEXEC);
}

static void serve(struct rpma_ep *ep, struct offer *offer) {
    struct pollfd fds[3] = {{.fd = open_signals(), .events = POLLIN}, {.events = POLLIN}};
    CALL(rpma_ep_get_fd(ep, &fds[1].fd));
    for (;;) {
        fds[2] = (struct pollfd){.fd = -1, .events = POLLIN};
        if (client)
            CALL(rpma_conn_get_event_fd(client, &fds[2].fd));
        if (poll(fds, 3, -1) < 0)
            fail("poll: %s", strerror(errno));
        if (fds[0].revents)
            return;
        if (fds[2].revents)
            take_event();
        else if (fds[1].revents)
            take_request(ep, offer);
    }
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct rpma_peer *peer = open_peer(args.addr, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    struct memory memory = open_memory(args.file, args.number * LOG_SIZE);
    struct log_header *log = (void *)(memory.ptr + (args.number - 1) * LOG_SIZE);
    int usage = memory.is_pmem ? USAGE : USAGE & ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    struct rpma_mr_local *mr;

    open_log(&memory, log);
    CALL(rpma_mr_reg(peer, log, LOG_SIZE, usage, &mr));
    struct offer offer = make_offer(peer, mr, has_direct_write(&args, &memory));
    struct rpma_ep *ep = start_listening(peer, &args);
    serve(ep, &offer);

    (void)rpma_conn_delete(&client);
    check_log(log);
    CALL(rpma_ep_shutdown(&ep));
    CALL(rpma_mr_dereg(&mr));
    CALL(rpma_peer_delete(&peer));
    close_memory(&memory);
    return EXIT_SUCCESS;
}
