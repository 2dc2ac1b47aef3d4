// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// events.c -- commands for the events of the device, and for the halves of rpma_cq_wait()

#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "peer.h"

/* The number of the connection whose CQ this is, or -1. */
static int conn_of_queue(const struct rpma_cq *cq,
                         int (*queue_of)(const struct rpma_conn *, struct rpma_cq **)) {
    for (int i = 0; i < MAX_CONNS; i++) {
        struct rpma_cq *own = NULL;
        if (world.conn[i] != NULL && queue_of(world.conn[i], &own) == 0 && own == cq)
            return i;
    }
    return -1;
}

/* Says whose queue it is, as the argument "queue" of other commands does. */
static void reply_queue(const struct rpma_cq *cq) {
    for (int i = 0; i < MAX_OTHERS; i++) {
        struct rpma_cq *of_srq = NULL;
        if (world.lent[i] == cq)
            reply("queue=lent lent=%d", i);
        if (world.srq[i] != NULL && rpma_srq_get_rcq(world.srq[i], &of_srq) == 0 &&
            of_srq == cq)
            reply("queue=srq srq=%d", i);
    }
    int conn = conn_of_queue(cq, rpma_conn_get_cq);
    if (conn >= 0)
        reply("queue=main conn=%d", conn);
    conn = conn_of_queue(cq, rpma_conn_get_rcq);
    if (conn >= 0)
        reply("queue=rcq conn=%d", conn);
}

static int next_event(const struct args *args, struct rpma_peer *peer,
                      struct rpma_peer_event *event) {
    int fd = -1;
    int ret = rpma_peer_get_event_fd(peer, &fd);
    if (ret == 0 && arg_number_or(args, "polled", 1) != 0)
        ret = wait_readable(fd, (int)arg_number_or(args, "timeout", 60000));
    return ret != 0 ? ret : rpma_peer_next_event(peer, event);
}

/*
 * Answers with the next event of the device, and the numbers of the handles that it names.
 * second=1 takes it through another peer on the device.
 */
static int do_device_event(const struct args *args) {
    struct rpma_peer_event event;
    struct rpma_peer *second = NULL;
    int ret = 0;
    if (arg_number_or(args, "second", 0) != 0)
        ret = rpma_peer_new(world.device, &second);
    if (ret == 0)
        ret = next_event(args, second != NULL ? second : world.peer, &event);
    (void)rpma_peer_delete(&second);
    if (ret != 0)
        return ret;
    reply("type=%d ibv=%d port=%u", event.type, event.ibv_event, event.port);
    for (int i = 0; event.conn != NULL && i < MAX_CONNS; i++)
        if (world.conn[i] == event.conn)
            reply("conn=%d", i);
    for (int i = 0; event.srq != NULL && i < MAX_OTHERS; i++)
        if (world.srq[i] == event.srq)
            reply("srq=%d", i);
    if (event.cq != NULL)
        reply_queue(event.cq);
    return 0;
}

static int do_srq_limit(const struct args *args) {
    return rpma_srq_set_limit(world.srq[arg_slot(args, "srq", MAX_OTHERS)],
                              (uint32_t)arg_number(args, "limit"));
}

static int do_moderate(const struct args *args) {
    return rpma_cq_set_moderation(the_queue(args), (uint32_t)arg_number(args, "count"),
                                  (uint32_t)arg_number(args, "us"));
}

static int do_cq_take_event(const struct args *args) {
    return rpma_cq_take_event(the_queue(args));
}

static int do_cq_arm(const struct args *args) {
    return rpma_cq_arm(the_queue(args), arg_number_or(args, "solicited", 0) != 0);
}

/* Takes and replaces receives until the CQ is empty. */
static int take_receives(const struct args *args, struct rpma_cq *cq, unsigned *taken) {
    struct ibv_wc wc[16];
    int got = 0, ret = 0;
    while (ret == 0 && (ret = rpma_cq_get_wc(cq, 16, wc, &got)) == 0)
        for (int i = 0; i < got && ret == 0; i++, ++*taken)
            ret = rpma_recv(the_conn(args), world.mr[0], 0, 8, NULL);
    return ret == RPMA_E_NO_COMPLETION ? 0 : ret;
}

/* Sleeps until the CQ has an event, which is armed for the next one before it is emptied. */
static int with_epoll(const struct args *args, struct rpma_cq *cq, int epoll_fd,
                      unsigned *taken) {
    struct epoll_event ready;
    if (epoll_wait(epoll_fd, &ready, 1, 60000) != 1)
        return ERR_TIMEOUT;
    int ret = rpma_cq_take_event(cq);
    if (ret == 0)
        ret = rpma_cq_arm(cq, false);
    return ret == 0 ? take_receives(args, cq, taken) : ret;
}

/* Sleeps only if a second look after arming finds nothing. */
static int poll_then_sleep(const struct args *args, struct rpma_cq *cq, int epoll_fd,
                           unsigned *taken) {
    (void)epoll_fd;
    const unsigned before = *taken;
    int fd = -1;
    int ret = rpma_cq_arm(cq, false);
    if (ret == 0)
        ret = take_receives(args, cq, taken);
    if (ret != 0 || *taken != before)
        return ret;
    ret = rpma_cq_get_fd(cq, &fd);
    if (ret == 0)
        ret = wait_readable(fd, 60000);
    if (ret == 0)
        ret = rpma_cq_take_event(cq);
    return ret == 0 ? take_receives(args, cq, taken) : ret;
}

/* Receives count messages with one of the loops of rpma_cq_arm(3). */
static int do_receive_armed(const struct args *args) {
    struct rpma_cq *cq = the_queue(args);
    const unsigned count = (unsigned)arg_number(args, "count");
    const bool is_epoll = strcmp(arg_text(args, "how"), "epoll") == 0;
    struct epoll_event event = {.events = EPOLLIN};
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC), fd = -1;
    unsigned taken = 0, rounds = 0;
    int ret = rpma_cq_get_fd(cq, &fd);
    if (ret == 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        ret = ERR_SYSTEM;
    for (; ret == 0 && taken < count; rounds++)
        ret = (is_epoll ? with_epoll : poll_then_sleep)(args, cq, epoll_fd, &taken);
    close(epoll_fd);
    reply("n=%u rounds=%u", taken, rounds);
    return ret;
}

const struct command event_commands[] = {
    {"receive-armed", do_receive_armed},
    {"device-event", do_device_event},
    {"srq-limit", do_srq_limit},
    {"moderate", do_moderate},
    {"cq-take-event", do_cq_take_event},
    {"cq-arm", do_cq_arm},
    {NULL, NULL},
};
