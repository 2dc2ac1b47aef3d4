// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// wait.c -- commands for completions, blocking and with descriptors

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "peer.h"

int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int wait_readable(int fd, int timeout_ms) {
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    int ready = poll(&polled, 1, timeout_ms);
    if (ready > 0)
        return 0;
    return ready == 0 || errno == EINTR ? ERR_TIMEOUT : ERR_SYSTEM;
}

struct rpma_cq *the_queue(const struct args *args) {
    const char *name = arg_text_or(args, "queue", "main");
    struct rpma_cq *cq = NULL;
    int ret = RPMA_E_INVAL;
    if (strcmp(name, "main") == 0)
        ret = rpma_conn_get_cq(the_conn(args), &cq);
    else if (strcmp(name, "rcq") == 0)
        ret = rpma_conn_get_rcq(the_conn(args), &cq);
    else if (strcmp(name, "srq") == 0)
        ret = rpma_srq_get_rcq(world.srq[arg_slot(args, "srq", MAX_OTHERS)], &cq);
    else if (strcmp(name, "lent") == 0) {
        cq = world.lent[arg_slot(args, "lent", MAX_OTHERS)];
        ret = 0;
    }
    if (ret != 0 || cq == NULL)
        bad_script("%s: no queue '%s'", args->verb, name);
    return cq;
}

static void reply_completion(const struct ibv_wc *wc, int number) {
    uint32_t imm = (wc->wc_flags & IBV_WC_WITH_IMM) != 0 ? ntohl(wc->imm_data) : 0;
    if (wc->status != IBV_WC_SUCCESS)
        reply("wc%d=%d:-:%llu:0:0:%u", number, wc->status, (unsigned long long)wc->wr_id,
              wc->qp_num);
    else
        reply("wc%d=0:%d:%llu:%u:%u:%u", number, wc->opcode, (unsigned long long)wc->wr_id,
              wc->byte_len, imm, wc->qp_num);
}

/* Takes up to wanted completions and adds each to the answer. */
static int take(struct rpma_cq *cq, int wanted, int *got) {
    struct ibv_wc wc[16];
    int room = (int)(sizeof(wc) / sizeof(wc[0]));
    int count = 0;
    int ret = rpma_cq_get_wc(cq, wanted - *got < room ? wanted - *got : room, wc, &count);
    for (int i = 0; ret == 0 && i < count; i++)
        reply_completion(&wc[i], (*got)++);
    return ret;
}

/* The wake-up may be stale: the caller polls the queue again in any case. */
static int wake_up(struct rpma_conn *conn, struct rpma_cq *cq, int timeout_ms) {
    int fd = -1;
    int ret = rpma_cq_get_fd(cq, &fd);
    if (ret == 0)
        ret = wait_readable(fd, timeout_ms);
    if (ret != 0)
        return ret;
    ret = rpma_cq_wait(cq);
    if (ret == RPMA_E_SHARED_CHANNEL) {
        struct rpma_cq *fired = NULL;
        ret = rpma_conn_wait(conn, 0, &fired, NULL);
    }
    return ret == RPMA_E_NO_COMPLETION ? 0 : ret;
}

/* Collects count completions within timeout; with busy=1 it never sleeps. */
static int do_wc(const struct args *args) {
    struct rpma_cq *cq = the_queue(args);
    int wanted = (int)arg_number_or(args, "count", 1);
    int64_t began = now_ms();
    int64_t deadline = began + (int64_t)arg_number_or(args, "timeout", 60000);
    bool busy = arg_number_or(args, "busy", 0) != 0;
    int got = 0;
    int ret = 0;
    while (got < wanted) {
        ret = take(cq, wanted, &got);
        if (ret == RPMA_E_NO_COMPLETION) {
            int64_t left = deadline - now_ms();
            ret = left <= 0 ? ERR_TIMEOUT : 0;
            if (ret == 0 && !busy)
                ret = wake_up(world.conn[arg_slot(args, "conn", MAX_CONNS)], cq, (int)left);
        }
        if (ret != 0)
            break;
    }
    reply("n=%d ms=%lld", got, (long long)(now_ms() - began));
    return ret;
}

static int do_cq_wait(const struct args *args) {
    return rpma_cq_wait(the_queue(args));
}

static int do_poll_wc(const struct args *args) {
    int got = 0;
    int ret = take(the_queue(args), (int)arg_number_or(args, "count", 1), &got);
    reply("n=%d", got);
    return ret;
}

/* Answers with the queue that the connection's shared channel reports. */
static int do_conn_wait(const struct args *args) {
    struct rpma_cq *cq = NULL;
    struct rpma_cq *main = NULL;
    bool is_rcq = false;
    int ret = rpma_conn_wait(the_conn(args), 0, &cq, &is_rcq);
    if (ret == 0)
        ret = rpma_conn_get_cq(the_conn(args), &main);
    if (ret == 0)
        reply("queue=%s rcq=%d", cq == main ? "main" : "rcq", is_rcq);
    return ret;
}

static int the_descriptor(const struct args *args, int *fd) {
    const char *what = arg_text(args, "fd");
    if (strcmp(what, "ep") == 0)
        return rpma_ep_get_fd(world.ep, fd);
    if (strcmp(what, "event") == 0)
        return rpma_conn_get_event_fd(the_conn(args), fd);
    if (strcmp(what, "channel") == 0)
        return rpma_conn_get_compl_fd(the_conn(args), fd);
    if (strcmp(what, "device") == 0)
        return rpma_peer_get_event_fd(world.peer, fd);
    return rpma_cq_get_fd(the_queue(args), fd);
}

static int do_nonblock(const struct args *args) {
    int fd = -1;
    int ret = the_descriptor(args, &fd);
    if (ret == 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
        ret = ERR_SYSTEM;
    return ret;
}

/* Adds a descriptor that will be reported as tag. */
static int do_epoll_add(const struct args *args) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = arg_number(args, "tag")};
    int fd = -1;
    if (world.epoll_fd < 0)
        world.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int ret = the_descriptor(args, &fd);
    if (ret == 0 && epoll_ctl(world.epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        ret = ERR_SYSTEM;
    return ret;
}

static int do_epoll_wait(const struct args *args) {
    struct epoll_event events[64];
    int ready =
        epoll_wait(world.epoll_fd, events, 64, (int)arg_number_or(args, "timeout", 60000));
    if (ready <= 0)
        return ready == 0 ? ERR_TIMEOUT : ERR_SYSTEM;
    reply("n=%d", ready);
    for (int i = 0; i < ready; i++)
        reply("tag%d=%llu", i, (unsigned long long)events[i].data.u64);
    return 0;
}

const struct command wait_commands[] = {
    {"wc", do_wc},
    {"cq-wait", do_cq_wait},
    {"poll-wc", do_poll_wc},
    {"conn-wait", do_conn_wait},
    {"nonblock", do_nonblock},
    {"epoll-add", do_epoll_add},
    {"epoll-wait", do_epoll_wait},
    {NULL, NULL},
};
