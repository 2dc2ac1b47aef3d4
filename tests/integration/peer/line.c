// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

/*
 * line.c -- commands for many connections whose completions stand in one queue of the program
 *
 * Connection number n of the client is number n of the server. In a turn the client writes into
 * its share of the server's region and sends a message, and the server sends one back. Both
 * sides attribute each completion by its queue pair and check that it is the connection's next.
 */

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "await.h"
#include "peer.h"

#define WORD 8       /* bytes of all that is written or sent */
#define WRITES 4     /* of a turn; a share has these words, */
#define OUT WRITES   /* what is sent, */
#define IN (OUT + 1) /* and two places for what is received, by turns */
#define SHARE ((IN + 2) * WORD)
#define BYE 0xfffffffu /* turn number of the client's last message */
#define ECHO (OUT + 1) /* marks what the server sends */
#define WAKE_UP UINT64_MAX
#define MAX_THREADS 8

struct place {
    uint64_t posted, completed; /* operations of the send queue */
    uint32_t received;          /* messages */
    uint32_t turns, answered;   /* turns begun, and of the client: turns answered */
    bool said_bye;
};

struct owner {
    uint32_t qp_num, number;
};

static struct {
    struct place place[MAX_CONNS];
    struct owner owner[MAX_CONNS]; /* sorted */
    size_t count;
    struct rpma_cq *queue[2]; /* the second one for receives, or NULL */
    pthread_mutex_t mutex;
    bool is_client;
    uint64_t begun, wanted; /* turns of all connections */
    size_t left;            /* connections that have sent their last message */
    uint64_t outstanding;   /* outstanding operations of all send queues */
} line = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uint64_t word(uint32_t number, uint32_t turn, uint32_t which) {
    return (uint64_t)(number + 1) << 32 | turn << 4 | which;
}

static uint64_t *words(uint32_t number) {
    return (uint64_t *)(void *)(world.memory[0].base + (size_t)number * SHARE);
}

static size_t at(uint32_t number, size_t which) {
    return (size_t)number * SHARE + which * WORD;
}

/* ---- connections --------------------------------------------------------------------------
 */

static int receive_early(struct rpma_conn_req *req, uint32_t number) {
    int ret = 0;
    for (uintptr_t i = 0; i < 2 && ret == 0; i++)
        ret = rpma_conn_req_recv(req, world.mr[0], at(number, IN + i), WORD, (void *)i);
    return ret;
}

static const struct rpma_conn_cfg *the_cfg(const struct args *args) {
    return world.cfg[arg_slot(args, "cfg", MAX_OTHERS)];
}

static int line_up(struct rpma_conn_req **req, uint32_t number,
                   const struct rpma_conn_private_data *pdata) {
    int ret = number < MAX_CONNS ? receive_early(*req, number) : ERR_MISMATCH;
    if (ret == 0)
        ret = rpma_conn_req_connect(req, pdata, &world.conn[number]);
    if (ret == 0)
        ret = rpma_conn_get_qp_num(world.conn[number], &line.owner[number].qp_num);
    line.owner[number].number = number;
    rpma_conn_req_delete(req);
    return ret;
}

static int by_qp_num(const void *first, const void *second) {
    uint32_t a = ((const struct owner *)first)->qp_num;
    uint32_t b = ((const struct owner *)second)->qp_num;
    return (a > b) - (a < b);
}

static void begin_line(const struct args *args) {
    memset(line.place, 0, sizeof(line.place));
    line.count = arg_slot(args, "count", MAX_CONNS + 1);
    line.left = line.begun = line.outstanding = 0;
}

static int do_line_accept(const struct args *args) {
    int ret = 0;
    begin_line(args);
    for (size_t i = 0; i < line.count && ret == 0; i++) {
        struct rpma_conn_req *req = NULL;
        struct rpma_conn_private_data pdata = {NULL, 0};
        uint32_t number = 0;
        ret = rpma_ep_next_conn_req(world.ep, the_cfg(args), &req);
        if (ret == 0)
            ret = rpma_conn_req_get_private_data(req, &pdata);
        if (ret == 0 && pdata.len >= sizeof(number)) {
            memcpy(&number, pdata.ptr, sizeof(number));
            ret = line_up(&req, ntohl(number), NULL);
        }
    }
    for (size_t i = 0; i < line.count && ret == 0; i++)
        ret = await_event(world.conn[i], RPMA_CONN_ESTABLISHED);
    qsort(line.owner, line.count, sizeof(line.owner[0]), by_qp_num);
    return ret;
}

static int do_line_connect(const struct args *args) {
    int ret = 0;
    begin_line(args);
    for (uint32_t i = 0; i < line.count && ret == 0; i++) {
        struct rpma_conn_req *req = NULL;
        uint32_t number = htonl(i);
        struct rpma_conn_private_data pdata = {&number, sizeof(number)};
        ret = rpma_conn_req_new(world.peer, arg_text(args, "addr"), arg_text(args, "port"),
                                the_cfg(args), &req);
        if (ret == 0)
            ret = line_up(&req, i, &pdata);
        if (ret == 0)
            ret = await_event(world.conn[i], RPMA_CONN_ESTABLISHED);
    }
    qsort(line.owner, line.count, sizeof(line.owner[0]), by_qp_num);
    return ret;
}

/* The client disconnects, and the server finishes that. */
static int do_line_end(const struct args *args) {
    bool begins = arg_number_or(args, "begins", 0) != 0;
    int ret = 0;
    for (size_t i = 0; begins && i < line.count && ret == 0; i++)
        ret = rpma_conn_disconnect(world.conn[i]);
    for (size_t i = 0; i < line.count && ret == 0; i++) {
        ret = await_event(world.conn[i], RPMA_CONN_CLOSED);
        if (ret == 0 && !begins)
            ret = rpma_conn_disconnect(world.conn[i]);
        if (ret == 0)
            ret = rpma_conn_delete(&world.conn[i]);
    }
    return ret;
}

/* ---- turns: all with the mutex held --------------------------------------------------------
 */

static int say(uint32_t number, uint64_t text) {
    struct place *p = &line.place[number];
    words(number)[OUT] = text;
    line.outstanding++;
    return rpma_send(world.conn[number], world.mr[0], at(number, OUT), WORD,
                     RPMA_F_COMPLETION_ALWAYS, (void *)(uintptr_t)p->posted++);
}

static int begin_turn(uint32_t number) {
    struct place *p = &line.place[number];
    uint32_t turn = ++p->turns;
    int ret = 0;
    line.begun++;
    for (uint32_t i = 0; i < WRITES && ret == 0; i++) {
        words(number)[i] = word(number, turn, i);
        line.outstanding++;
        ret = rpma_write(world.conn[number], world.remote[0], at(number, i), world.mr[0],
                         at(number, i), WORD, RPMA_F_COMPLETION_ALWAYS,
                         (void *)(uintptr_t)p->posted++);
    }
    return ret == 0 ? say(number, word(number, turn, OUT)) : ret;
}

/* A turn of the client ends when its operations have completed and the answer has arrived. */
static int go_on(uint32_t number) {
    struct place *p = &line.place[number];
    if (!line.is_client || p->completed < p->posted || p->answered < p->turns)
        return 0;
    if (p->said_bye) {
        line.left++;
        return 0;
    }
    if (line.begun < line.wanted)
        return begin_turn(number);
    p->said_bye = true;
    return say(number, word(number, BYE, OUT));
}

static int mismatch(const char *what, const struct ibv_wc *wc, uint64_t found) {
    reply("what=%s qp=%u status=%d ctx=%llu found=%#llx", what, wc->qp_num, (int)wc->status,
          (unsigned long long)wc->wr_id, (unsigned long long)found);
    return ERR_MISMATCH;
}

/* A message of the client proves that its writes of the same turn have arrived. */
static int answer(uint32_t number, const struct ibv_wc *wc, uint64_t text) {
    struct place *p = &line.place[number];
    if (text == word(number, BYE, OUT)) {
        line.left++;
        return 0;
    }
    p->turns++;
    if (text != word(number, p->turns, OUT))
        return mismatch("message", wc, text);
    for (uint32_t i = 0; i < WRITES; i++)
        if (words(number)[i] != word(number, p->turns, i))
            return mismatch("written", wc, words(number)[i]);
    return say(number, word(number, p->turns, ECHO));
}

static int note_answer(uint32_t number, const struct ibv_wc *wc, uint64_t text) {
    struct place *p = &line.place[number];
    p->answered++;
    if (p->answered != p->turns || text != word(number, p->turns, ECHO))
        return mismatch("answer", wc, text);
    return go_on(number);
}

static int hear(uint32_t number, const struct ibv_wc *wc) {
    struct place *p = &line.place[number];
    uint32_t slot = p->received++ % 2;
    uint64_t text = words(number)[IN + slot];
    if (wc->wr_id != slot || wc->byte_len != WORD)
        return mismatch("receive", wc, slot);
    int ret = rpma_recv(world.conn[number], world.mr[0], at(number, IN + slot), WORD,
                        (void *)(uintptr_t)slot);
    if (ret != 0)
        return ret;
    return line.is_client ? note_answer(number, wc, text) : answer(number, wc, text);
}

static int attribute(const struct ibv_wc *wc) {
    struct owner key = {.qp_num = wc->qp_num};
    const struct owner *found = bsearch(&key, line.owner, line.count, sizeof(key), by_qp_num);
    if (wc->status != IBV_WC_SUCCESS)
        return mismatch("failed", wc, 0);
    if (wc->wr_id == WAKE_UP)
        return 0;
    if (found == NULL)
        return mismatch("unknown", wc, 0);
    if ((wc->opcode & IBV_WC_RECV) != 0)
        return hear(found->number, wc);
    struct place *p = &line.place[found->number];
    if (wc->wr_id != p->completed)
        return mismatch("order", wc, p->completed);
    p->completed++;
    line.outstanding--;
    return go_on(found->number);
}

static int drain(struct rpma_cq *cq) {
    struct ibv_wc wc[16];
    int got = 0;
    int ret = rpma_cq_get_wc(cq, 16, wc, &got);
    while (ret == 0) {
        for (int i = 0; i < got && ret == 0; i++)
            ret = attribute(&wc[i]);
        if (ret == 0)
            ret = rpma_cq_get_wc(cq, 16, wc, &got);
    }
    return ret == RPMA_E_NO_COMPLETION ? 0 : ret;
}

static bool is_done(void) {
    return line.left == line.count && line.outstanding == 0;
}

/* ---- waiting -------------------------------------------------------------------------------
 */

/* One thread waits for the queues among other descriptors. */
static int wait_by_epoll(void) {
    struct epoll_event events[2];
    int epoll = epoll_create1(EPOLL_CLOEXEC), ret = epoll < 0 ? ERR_SYSTEM : 0;
    for (uint32_t i = 0; i < 2 && line.queue[i] != NULL && ret == 0; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        int fd = -1;
        ret = rpma_cq_get_fd(line.queue[i], &fd);
        if (ret == 0 && (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0 ||
                         epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0))
            ret = ERR_SYSTEM;
    }
    while (ret == 0 && !is_done()) {
        int ready = epoll_wait(epoll, events, 2, 60000);
        ret = ready <= 0 ? ERR_TIMEOUT : 0;
        for (int i = 0; i < ready && ret == 0; i++) {
            ret = rpma_cq_wait(line.queue[events[i].data.u32]);
            if (ret == 0 || ret == RPMA_E_NO_COMPLETION)
                ret = drain(line.queue[events[i].data.u32]);
        }
    }
    close(epoll);
    return ret;
}

/* One of several threads, each of which blocks. The first to see the end wakes another one up.
 */
static void *wait_by_blocking(void *result) {
    int ret = 0;
    bool done = false;
    while (ret == 0 && !done) {
        ret = rpma_cq_wait(line.queue[0]);
        pthread_mutex_lock(&line.mutex);
        if (ret == 0 || ret == RPMA_E_NO_COMPLETION)
            ret = drain(line.queue[0]);
        done = is_done();
        pthread_mutex_unlock(&line.mutex);
    }
    *(int *)result = ret;
    (void)rpma_write(world.conn[0], NULL, 0, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS,
                     (void *)WAKE_UP);
    return NULL;
}

static int wait_in_threads(size_t threads) {
    pthread_t thread[MAX_THREADS];
    int result[MAX_THREADS] = {0};
    int ret = 0;
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, wait_by_blocking, &result[i]) != 0)
            bad_script("line: no thread");
    for (size_t i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        ret = ret == 0 ? result[i] : ret;
    }
    return ret;
}

/* The least and the most turns of a connection since the counts in before. */
static void reply_shares(const uint32_t *before) {
    uint32_t least = UINT32_MAX, most = 0;
    for (size_t i = 0; i < line.count; i++) {
        uint32_t share = line.place[i].turns - before[i];
        least = share < least ? share : least;
        most = share > most ? share : most;
    }
    reply("turns=%llu left=%zu outstanding=%llu least=%u most=%u",
          (unsigned long long)line.begun, line.left, (unsigned long long)line.outstanding,
          least, most);
}

/* turns: the client stops after so many on all connections; the server answers until all have
 * said bye. */
static int do_line(const struct args *args) {
    static uint32_t before[MAX_CONNS];
    size_t threads = arg_slot(args, "threads", MAX_THREADS + 1);
    int64_t began = now_ms();
    int ret = 0;
    line.wanted = arg_number_or(args, "turns", 0);
    line.is_client = line.wanted > 0;
    line.begun = line.left = 0;
    line.queue[0] = world.lent[0];
    line.queue[1] = world.lent[1];
    pthread_mutex_lock(&line.mutex);
    for (uint32_t i = 0; i < line.count && ret == 0; i++) {
        before[i] = line.place[i].turns;
        line.place[i].said_bye = false;
        ret = line.is_client ? begin_turn(i) : 0;
    }
    pthread_mutex_unlock(&line.mutex);
    if (ret == 0)
        ret = threads > 0 ? wait_in_threads(threads) : wait_by_epoll();
    reply_shares(before);
    reply("ms=%lld", (long long)(now_ms() - began));
    return ret;
}

const struct command line_commands[] = {
    {"line-accept", do_line_accept},
    {"line-connect", do_line_connect},
    {"line", do_line},
    {"line-end", do_line_end},
    {NULL, NULL},
};
