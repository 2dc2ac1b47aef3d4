/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* mover.h -- common definitions of the client and the server of the block mover */

#ifndef MOVER_H
#define MOVER_H 1

#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#define STORE_BLOCKS 32 /* block N has the content fill_block(N) */
#define DEPTH 8         /* the most outstanding requests of a client */
#define CLIENTS_MAX 8   /* of a server at the same time */
#define RETRY_MS 100    /* after a lost or failed connection, or without a device */

/*
 * The server writes the block to slot SLOT of the memory that the client offers, and then sends
 * the reply on the same connection: when the reply arrives, the block is in memory. All
 * numbers are in network byte order. A message fits into one packet, so that no connection ends
 * in the middle of one and occupies a receive of the shared queue.
 */
struct request {
    uint32_t ticket, block, slot;
};

struct reply {
    uint32_t ticket, block, slot, checksum;
};

/* The byte with which a server rejects a client. */
enum refusal { REFUSED_FULL = 1, REFUSED_OFFER };

/* The data of an epoll event: the descriptor that is ready, and its handler. */
struct source {
    void (*handle)(void *owner);
    void *owner;
};

/* One loop waits for all events. */
struct loop {
    int epoll_fd;
    bool stopped; /* by a signal */
    struct source signals;
};

static inline void watch(const struct loop *loop, int fd, struct source *source) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) ||
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event))
        fail("cannot watch a descriptor: %s", strerror(errno));
}

/* The descriptor of a device remains open when the device is no longer used. */
static inline void unwatch(const struct loop *loop, int fd) {
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static inline void stop_loop(void *loop) {
    ((struct loop *)loop)->stopped = true;
}

static inline void open_loop(struct loop *loop) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->signals = (struct source){stop_loop, loop};
    watch(loop, signalfd(-1, &signals, SFD_CLOEXEC), &loop->signals);
}

/* Handles one event: its handler may delete an object to which later events refer. */
static inline void run_loop(struct loop *loop, int timeout_ms) {
    struct epoll_event event;
    int ready = epoll_wait(loop->epoll_fd, &event, 1, timeout_ms);
    if (ready < 0 && errno != EINTR)
        fail("epoll_wait: %s", strerror(errno));
    const struct source *source = ready == 1 ? event.data.ptr : NULL;
    if (source)
        source->handle(source->owner);
}

/* The queues that all connections of a side share; all completions are in one CQ. */
struct queues {
    struct rpma_cq *cq;
    struct rpma_srq *srq;
    struct rpma_conn_cfg *cfg; /* of connections that use the queues */
    struct source source;
};

static inline void open_queues(struct queues *queues, struct rpma_peer *peer, uint32_t cq_size,
                               uint32_t receives, uint32_t sq_size) {
    struct rpma_cq_cfg *cq_cfg;
    struct rpma_srq_cfg *srq_cfg;
    CALL(rpma_cq_cfg_new(&cq_cfg));
    CALL(rpma_cq_cfg_set_size(cq_cfg, cq_size));
    CALL(rpma_cq_new(peer, cq_cfg, &queues->cq));
    CALL(rpma_cq_cfg_delete(&cq_cfg));
    CALL(rpma_srq_cfg_new(&srq_cfg));
    CALL(rpma_srq_cfg_set_rq_size(srq_cfg, receives));
    CALL(rpma_srq_cfg_set_rcq_size(srq_cfg, 0)); /* receives complete in the connections' CQ */
    CALL(rpma_srq_new(peer, srq_cfg, &queues->srq));
    CALL(rpma_srq_cfg_delete(&srq_cfg));
    CALL(rpma_conn_cfg_new(&queues->cfg));
    CALL(rpma_conn_cfg_set_cq(queues->cfg, queues->cq));
    CALL(rpma_conn_cfg_set_srq(queues->cfg, queues->srq));
    CALL(rpma_conn_cfg_set_sq_size(queues->cfg, sq_size));
}

static inline void close_queues(struct queues *queues) {
    CALL(rpma_conn_cfg_delete(&queues->cfg));
    CALL(rpma_srq_delete(&queues->srq));
    CALL(rpma_cq_delete(&queues->cq));
}

/* Arms the descriptor for the next completion; the caller polls afterwards. Returns false if
 * the device was removed. */
static inline bool rearm(struct rpma_cq *cq) {
    int ret = rpma_cq_take_event(cq);
    return (!ret || ret == RPMA_E_NO_COMPLETION) && !rpma_cq_arm(cq, false);
}

/*
 * Returns true if messages can be sent. Call it right before a connection is deleted or
 * connected, because the event of a port arrives later: otherwise the other side would not be
 * notified, and soft-RoCE establishes no more connections once such a message could not be
 * sent.
 */
static inline bool port_is_up(const struct rpma_peer *peer) {
    struct ibv_port_attr attr;
    struct ibv_pd *pd;
    CALL(rpma_peer_get_ibv_pd(peer, &pd));
    return !ibv_query_port(pd->context, 1, &attr) && attr.state == IBV_PORT_ACTIVE;
}

/*
 * No message arrives after this, so a poll takes the completions of all receives before the
 * deletion. With it, mlx5 and others remove those that are left, and the receives with them.
 */
static inline void stop_receiving(struct rpma_conn *conn, bool *ending) {
    (void)rpma_conn_disconnect(conn);
    *ending = true;
}

/* Takes one event of the device; returns its type, or 0. */
static inline unsigned take_peer_event(struct rpma_peer *peer, const char *who) {
    struct rpma_peer_event event;
    int ret = rpma_peer_next_event(peer, &event);
    if (ret == RPMA_E_NO_EVENT)
        return 0;
    check_call(ret, "rpma_peer_next_event");
    if (event.type == RPMA_PEER_EVENT_CQ_ERROR || event.type == RPMA_PEER_EVENT_SRQ_ERROR)
        fail("a queue has failed: event %d", event.ibv_event);
    if (event.type == RPMA_PEER_EVENT_PORT_UP || event.type == RPMA_PEER_EVENT_PORT_DOWN)
        printf("%s: port %u is %s\n", who, event.port,
               event.type == RPMA_PEER_EVENT_PORT_UP ? "up" : "down");
    if (event.type == RPMA_PEER_EVENT_DEVICE_GONE)
        printf("%s: the device was removed\n", who);
    return event.type;
}

/* Opens the side on the device of a local address, or with a route to a remote one, if there is
 * one now. Its memory is the file, or plain memory if file is NULL. */
static inline bool open_device(struct side *side, const char *addr,
                               enum rpma_util_ibv_context_type type, const char *file,
                               size_t size, int usage) {
    struct ibv_context *device;
    struct rpma_peer *peer;
    if (rpma_utils_get_ibv_context(addr, type, &device) || rpma_peer_new(device, &peer))
        return false;
    *side = open_side(peer, file, size, usage);
    return true;
}

#endif
