// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.c -- serves a log in persistent memory to one client at a time, until it is stopped

#include "log.h"

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
    .example = 14,
    .purpose = "Serves log number LOG in the persistent memory FILE to one client at a time.",
    .number = "LOG",
    .uses_file = true,
    .direct_write_option = true,
    .new_option = "makes an empty log in FILE, which is valid once a client has filled it",
};

static struct memory memory;
static struct log_header *header; // of the log, which follows it
static struct rpma_conn *client;

// The signature is erased first and written last, so a header with a signature is complete.
static void make_log(void) {
    struct log_header new_header = make_header();
    memset(header->signature, 0, sizeof(header->signature));
    memory.persist(header, sizeof(*header));
    memcpy(new_header.signature, header->signature, sizeof(header->signature));
    *header = new_header;
    memory.persist(header, sizeof(*header));
    memcpy(header->signature, LOG_SIGNATURE, sizeof(header->signature));
    memory.persist(header, sizeof(*header));
}

// Returns the defect of the log as text, or NULL.
static const char *check_log(struct log_state *state, struct extent *extent) {
    const char *problem = read_header(header, state);
    if (problem)
        return problem;
    *extent = read_log((const char *)header, state->tail);
    return extent->end == state->tail ? NULL : "a record of the log is damaged";
}

/*
 * Overwrites data only with --new, and never a valid log. A new log has epoch 0, and so has a
 * log in plain memory at first: it does not count until a client has completed it, because the
 * server cannot detect whether it had another log before.
 */
static void open_log(const struct arguments *args) {
    struct log_state state;
    struct extent extent;
    // If a server was killed, its header may not be persistent yet.
    memory.persist(header, sizeof(*header));
    const char *problem = memory.is_pmem ? check_log(&state, &extent) : "plain memory is empty";
    if (memory.is_pmem && !args->make_new && problem)
        fail("log %u of %s: %s (--new makes an empty one)", args->number, args->file, problem);
    if (memory.is_pmem && args->make_new && !problem && state.epoch > 0)
        fail("log %u of %s is in use and has %llu records: start without --new", args->number,
             args->file, (unsigned long long)extent.count);
    if (problem)
        make_log();
}

/*
 * Only the newest client has access to the log: when it connects, the server ends the
 * connection of an older client, which may still run. No failure of a client stops the server,
 * and a program that is no client of the log does not end the connection of one.
 */
static void take_client(struct rpma_ep *ep, const struct offer *offer) {
    struct rpma_conn_req *req;
    if (take_request(ep, NULL, &req))
        return;
    CALL(rpma_conn_delete(&client));
    if (begin_connection(&req, offer, &client))
        printf("server: a client disconnected before it was accepted\n");
}

static void take_event(void) {
    enum rpma_conn_event event;
    int ret = rpma_conn_next_event(client, &event);
    if (ret != RPMA_E_NO_EVENT && (ret || event != RPMA_CONN_ESTABLISHED))
        CALL(rpma_conn_delete(&client));
}

// A stop signal makes a descriptor readable, like all other events of the server.
static int open_signals(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_CLOEXEC);
}

static void serve(struct rpma_ep *ep, const struct offer *offer) {
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
            take_client(ep, offer);
    }
}

int main(int argc, char *argv[]) {
    struct arguments args = read_arguments(argc, argv, &program);
    struct log_state state;
    struct extent extent;
    struct rpma_mr_local *mr;

    memory = open_memory(args.file, args.number * LOG_SIZE);
    size_t place = (args.number - 1) * LOG_SIZE;
    // Lock before reading: two servers on one log would serve two clients.
    lock_memory(&memory, args.file, place, LOG_SIZE);
    header = (void *)(memory.ptr + place);
    bool persistent = has_direct_write(&args, &memory);
    if (memory.is_pmem && !persistent)
        fail("clients cannot detect whether %s is persistent: see --direct-write", args.file);
    open_log(&args);

    struct rpma_peer *peer = open_peer(args.addr, RPMA_UTIL_IBV_CONTEXT_LOCAL);
    int usage = persistent ? USAGE : USAGE & ~RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    CALL(rpma_mr_reg(peer, header, LOG_SIZE, usage, &mr));
    struct offer offer = {.peer = peer, .mr = mr, .direct_write = persistent};
    struct rpma_ep *ep = start_listening(peer, &args);
    serve(ep, &offer);

    CALL(rpma_conn_delete(&client));
    const char *problem = check_log(&state, &extent);
    if (problem)
        fail("%s", problem);
    printf("server: the log has %llu records, all right\n", (unsigned long long)extent.count);
    CALL(rpma_ep_shutdown(&ep));
    CALL(rpma_mr_dereg(&mr));
    CALL(rpma_peer_delete(&peer));
    close_memory(&memory);
    return EXIT_SUCCESS;
}
