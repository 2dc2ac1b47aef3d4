// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// serve.c -- a server of any number of clients in one thread: it gives each client its share of
// a region and echoes its messages until the client leaves

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "load.h"
#include "peer.h"

#define SCRIPT UINT64_MAX /* tags of descriptors: standard input, */
#define ENDPOINT                                                                 \
    (UINT64_MAX - 1) /* the endpoint; 2 n is guest n's events, 2 n + 1 its queue \
                      */

/* Guest n has connection n, share n of region 0, and two places for messages in region 1. */
struct guest {
    struct rpma_cq *cq;
    size_t place; /* of the next message */
};

static struct guest guests[MAX_CONNS];

static struct {
    uint64_t accepted, failed, echoed, ended;
    size_t present;
} seen;

static size_t message_at(size_t number) {
    return (2 * number + guests[number].place) * MESSAGE;
}

static int watch(int fd, uint64_t tag) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};
    if (epoll_ctl(world.epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0 && errno != EEXIST)
        return ERR_SYSTEM;
    return 0;
}

/* Makes the descriptor non-blocking, because a wake-up may be stale. */
static int watch_without_blocking(int fd, uint64_t tag) {
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0)
        return ERR_SYSTEM;
    return watch(fd, tag);
}

static int watch_guest(size_t number) {
    int fd = -1;
    int ret = rpma_conn_get_event_fd(world.conn[number], &fd);
    if (ret == 0)
        ret = watch_without_blocking(fd, 2 * number);
    if (ret == 0)
        ret = rpma_conn_get_cq(world.conn[number], &guests[number].cq);
    if (ret == 0)
        ret = rpma_cq_get_fd(guests[number].cq, &fd);
    return ret == 0 ? watch_without_blocking(fd, 2 * number + 1) : ret;
}

/* The private data of the answer: the guest's number, then the descriptor of region 0, because
 * padding may follow at the end. */
static int answer_request(struct rpma_conn_req **req, size_t number) {
    unsigned char answer[64];
    uint32_t place = htonl((uint32_t)number);
    size_t size = 0;
    int ret = rpma_mr_get_descriptor_size(world.mr[0], &size);
    if (ret == 0)
        ret = rpma_mr_get_descriptor(world.mr[0], answer + sizeof(place));
    memcpy(answer, &place, sizeof(place));
    struct rpma_conn_private_data pdata = {answer, (uint8_t)(size + sizeof(place))};
    if (ret == 0)
        ret = rpma_conn_req_recv(*req, world.mr[1], message_at(number), MESSAGE, NULL);
    if (ret == 0)
        ret = rpma_conn_req_connect(req, &pdata, &world.conn[number]);
    rpma_conn_req_delete(req);
    return ret;
}

static size_t free_number(void) {
    size_t number = 0;
    while (number < MAX_CONNS && world.conn[number] != NULL)
        number++;
    if (number == MAX_CONNS)
        bad_script("serve: more than %d clients", MAX_CONNS);
    return number;
}

/* A leak as no server may have one; the soak test has to notice each kind. */
static int leak(const char *what) {
    static char bytes[4096];
    static void *volatile lost; /* volatile: no compiler drops the unread variable */
    struct rpma_mr_local *mr = NULL;
    if (strcmp(what, "memory") == 0) {
        lost = malloc(65536);
        return lost != NULL ? 0 : ERR_SYSTEM;
    }
    if (strcmp(what, "descriptor") == 0)
        return dup(STDIN_FILENO) >= 0 ? 0 : ERR_SYSTEM;
    if (strcmp(what, "region") == 0)
        return rpma_mr_reg(world.peer, bytes, sizeof(bytes), RPMA_MR_USAGE_READ_SRC, &mr);
    return 0;
}

/* A client killed meanwhile does not end the server. */
static int welcome(const char *leaked) {
    struct rpma_conn_req *req = NULL;
    size_t number = free_number();
    int ret = rpma_ep_next_conn_req(world.ep, NULL, &req);
    if (ret == RPMA_E_NO_EVENT)
        return 0;
    if (ret == 0) {
        guests[number].place = 0;
        ret = answer_request(&req, number);
    }
    if (ret == RPMA_E_PROVIDER) {
        seen.failed++;
        return 0;
    }
    if (ret == 0)
        ret = watch_guest(number);
    if (ret == 0)
        ret = leak(leaked);
    seen.accepted++;
    seen.present++;
    return ret;
}

static int heed(size_t number) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    if (world.conn[number] == NULL)
        return 0;
    int ret = rpma_conn_next_event(world.conn[number], &event);
    if (ret == RPMA_E_NO_EVENT || (ret == 0 && event == RPMA_CONN_ESTABLISHED))
        return 0;
    if (ret != 0)
        return ret;
    if (event == RPMA_CONN_CLOSED)
        rpma_conn_disconnect(world.conn[number]); /* finishes what the client began */
    seen.ended++;
    seen.present--;
    return rpma_conn_delete(&world.conn[number]);
}

/* The next message may come before this one's echo has been sent. */
static int echo(size_t number, const struct ibv_wc *wc) {
    size_t at = message_at(number);
    guests[number].place ^= 1;
    int ret = rpma_recv(world.conn[number], world.mr[1], message_at(number), MESSAGE, NULL);
    if (ret == 0 && (wc->wc_flags & IBV_WC_WITH_IMM) != 0)
        ret = rpma_send_with_imm(world.conn[number], world.mr[1], at, wc->byte_len,
                                 RPMA_F_COMPLETION_ALWAYS, ntohl(wc->imm_data), NULL);
    else if (ret == 0)
        ret = rpma_send(world.conn[number], world.mr[1], at, wc->byte_len,
                        RPMA_F_COMPLETION_ALWAYS, NULL);
    seen.echoed += ret == 0;
    return ret;
}

/* Operations fail when the client is gone; the event that follows ends the connection. */
static int serve_queue(size_t number) {
    struct ibv_wc wc;
    if (world.conn[number] == NULL)
        return 0;
    int ret = rpma_cq_wait(guests[number].cq);
    if (ret == 0)
        ret = rpma_cq_get_wc(guests[number].cq, 1, &wc, NULL);
    while (ret == 0) {
        if (wc.status == IBV_WC_SUCCESS && (wc.opcode & IBV_WC_RECV) != 0)
            ret = echo(number, &wc);
        if (ret == 0)
            ret = rpma_cq_get_wc(guests[number].cq, 1, &wc, NULL);
    }
    return ret == RPMA_E_NO_COMPLETION ? 0 : ret;
}

static int serve_one(uint64_t tag, const char *leaked) {
    if (tag == ENDPOINT)
        return welcome(leaked);
    return tag % 2 == 0 ? heed(tag / 2) : serve_queue(tag / 2);
}

static int prepare_to_serve(void) {
    int fd = -1;
    if (world.epoll_fd < 0)
        world.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int ret = rpma_ep_get_fd(world.ep, &fd);
    if (ret == 0)
        ret = watch_without_blocking(fd, ENDPOINT);
    return ret == 0 ? watch(STDIN_FILENO, SCRIPT) : ret;
}

/* Serves until the next command; the next "serve" serves the remaining clients. */
static int do_serve(const struct args *args) {
    const char *leaked = arg_text_or(args, "leak", "nothing");
    struct epoll_event events[64];
    bool goes_on = false;
    int ret = prepare_to_serve();
    while (ret == 0 && !goes_on) {
        int ready = epoll_wait(world.epoll_fd, events, 64, -1);
        for (int i = 0; ret == 0 && i < ready; i++) {
            if (events[i].data.u64 == SCRIPT)
                goes_on = true;
            else
                ret = serve_one(events[i].data.u64, leaked);
        }
    }
    reply("accepted=%llu failed=%llu echoed=%llu ended=%llu present=%zu",
          (unsigned long long)seen.accepted, (unsigned long long)seen.failed,
          (unsigned long long)seen.echoed, (unsigned long long)seen.ended, seen.present);
    return ret;
}

/* Bytes of the heap that are in use. */
static int do_heap(const struct args *args) {
    struct mallinfo2 info = mallinfo2();
    (void)args;
    reply("bytes=%zu", info.uordblks + info.hblkhd);
    return 0;
}

const struct command serve_commands[] = {
    {"serve", do_serve},
    {"heap", do_heap},
    {NULL, NULL},
};
