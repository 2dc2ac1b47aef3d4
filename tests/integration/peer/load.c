// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load.c -- commands that work on many connections or with many operations at once

#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "await.h"
#include "load.h"
#include "peer.h"

static int pick(struct worker *w, int below) {
    return rand_r(&w->random) % below;
}

static int finish(struct worker *w) {
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    int ret = await_completion(w->cq, &wc);
    w->status = wc.status;
    return ret;
}

/* Reads len bytes at roff back and compares them with what was written. */
static int read_back(struct worker *w, size_t roff, const char *wanted, size_t len) {
    memset(w->base + BACK, 0, len);
    int ret = rpma_read(w->conn, w->mr, BACK, w->remote, w->share + roff, len,
                        RPMA_F_COMPLETION_ALWAYS, NULL);
    if (ret == 0)
        ret = finish(w);
    if (ret == 0 && memcmp(w->base + BACK, wanted, len) != 0)
        ret = ERR_MISMATCH;
    return ret;
}

int write_pattern(struct worker *w, size_t roff, size_t len, uint64_t seed) {
    pattern_fill(w->base, len, seed);
    int ret = rpma_write(w->conn, w->remote, w->share + roff, w->mr, 0, len,
                         RPMA_F_COMPLETION_ON_ERROR, NULL);
    if (ret == 0)
        ret = rpma_flush(w->conn, w->remote, w->share + roff, len, RPMA_FLUSH_TYPE_VISIBILITY,
                         RPMA_F_COMPLETION_ALWAYS, NULL);
    if (ret == 0)
        ret = finish(w);
    return ret == 0 ? read_back(w, roff, w->base, len) : ret;
}

static int write_and_flush(struct worker *w) {
    size_t len = (size_t)pick(w, REMOTE) + 1;
    size_t roff = (size_t)pick(w, REMOTE - (int)len + 1);
    return write_pattern(w, roff, len, ++w->seed);
}

static int write_atomically(struct worker *w) {
    char word[RPMA_ATOMIC_WRITE_ALIGNMENT];
    size_t roff = (size_t)pick(w, REMOTE / RPMA_ATOMIC_WRITE_ALIGNMENT) * sizeof(word);
    pattern_fill(word, sizeof(word), ++w->seed);
    int ret = rpma_atomic_write(w->conn, w->remote, w->share + roff, word,
                                RPMA_F_COMPLETION_ALWAYS, NULL);
    if (ret == 0)
        ret = finish(w);
    return ret == 0 ? read_back(w, roff, word, sizeof(word)) : ret;
}

int exchange(struct worker *w) {
    struct ibv_wc wc[2] = {{.status = IBV_WC_SUCCESS}, {.status = IBV_WC_SUCCESS}};
    size_t len = (size_t)pick(w, MESSAGE) + 1;
    bool with_imm = pick(w, 2) != 0 && !w->without_imm;
    pattern_fill(w->base + SEND_AT, len, ++w->seed);
    memset(w->base + RECV_AT, 0, len);
    int ret = rpma_recv(w->conn, w->mr, RECV_AT, MESSAGE, NULL);
    if (ret == 0 && with_imm)
        ret = rpma_send_with_imm(w->conn, w->mr, SEND_AT, len, RPMA_F_COMPLETION_ALWAYS,
                                 (uint32_t)w->seed, NULL);
    else if (ret == 0)
        ret = rpma_send(w->conn, w->mr, SEND_AT, len, RPMA_F_COMPLETION_ALWAYS, NULL);
    for (int i = 0; ret == 0 && i < 2; i++) {
        ret = await_completion(w->cq, &wc[i]);
        w->status = wc[i].status;
    }
    if (ret != 0)
        return ret;
    const struct ibv_wc *received = wc[0].opcode == IBV_WC_RECV ? &wc[0] : &wc[1];
    bool same = received->byte_len == len &&
                memcmp(w->base + SEND_AT, w->base + RECV_AT, len) == 0 &&
                ((received->wc_flags & IBV_WC_WITH_IMM) != 0) == with_imm &&
                (!with_imm || ntohl(received->imm_data) == (uint32_t)w->seed);
    return same ? 0 : ERR_MISMATCH;
}

/* An empty message ends the echo. */
static int say_goodbye(struct worker *w) {
    int ret = rpma_send(w->conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, NULL);
    return ret == 0 ? finish(w) : ret;
}

/* Steps of any_operation(). */
enum { WRITES = 1 << 0, ATOMIC_WRITES = 1 << 1, MESSAGES = 1 << 2, EVERY_STEP = (1 << 3) - 1 };

int any_operation(struct worker *w) {
    static const struct {
        const char *name;
        int (*run)(struct worker *);
    } steps[] = {
        {"write-and-flush", write_and_flush},
        {"atomic-write", write_atomically},
        {"exchange", exchange},
    };
    int step;
    do
        step = pick(w, 3);
    while ((w->without & 1 << step) != 0);
    int ret = steps[step].run(w);
    if (ret != 0)
        w->failed_in = steps[step].name;
    else
        w->rounds++;
    w->tried |= 1 << step;
    return ret;
}

static void *work(void *argument) {
    struct worker *w = argument;
    // On a busy machine the time may be over before a kind has had its first turn.
    while (w->ret == 0 && ((w->tried | w->without) != EVERY_STEP || now_ms() < w->deadline))
        w->ret = any_operation(w);
    if (w->ret == 0)
        w->ret = say_goodbye(w);
    return NULL;
}

/* Posts the next receive before the answer, which lets the other side send again. */
static int answer(struct worker *w, const struct ibv_wc *received) {
    size_t at = ECHO_AT(w->rounds);
    int ret = rpma_recv(w->conn, w->mr, ECHO_AT(w->rounds + 1), MESSAGE, NULL);
    if (ret == 0 && (received->wc_flags & IBV_WC_WITH_IMM) != 0)
        ret = rpma_send_with_imm(w->conn, w->mr, at, received->byte_len,
                                 RPMA_F_COMPLETION_ALWAYS, ntohl(received->imm_data), NULL);
    else if (ret == 0)
        ret = rpma_send(w->conn, w->mr, at, received->byte_len, RPMA_F_COMPLETION_ALWAYS, NULL);
    return ret;
}

/* Sends messages back until an empty one arrives. The first receive is posted. */
static void *echo(void *argument) {
    struct worker *w = argument;
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    while (w->ret == 0) {
        w->ret = await_completion(w->cq, &wc);
        w->status = wc.status;
        if (w->ret != 0 || (wc.opcode & IBV_WC_RECV) == 0)
            continue;
        if (wc.byte_len == 0)
            break;
        w->ret = answer(w, &wc);
        w->rounds += w->ret == 0;
    }
    return NULL;
}

static int start(struct worker *w, size_t number, void *(*function)(void *),
                 const struct args *args) {
    w->conn = world.conn[number];
    w->mr = world.mr[number];
    w->remote = world.remote[number];
    w->base = world.memory[number].base;
    w->deadline = now_ms() + 1000 * (int64_t)arg_number_or(args, "seconds", 0);
    w->without_imm = arg_number_or(args, "imm", 1) == 0;
    w->without = arg_number_or(args, "atomic", 1) == 0 ? ATOMIC_WRITES : 0;
    if (arg_number_or(args, "apart", 0) != 0)
        w->without |= number % 2 == 0 ? MESSAGES : WRITES | ATOMIC_WRITES;
    w->random = (unsigned)number + 1;
    w->seed = number << 24;
    int ret = rpma_conn_get_cq(w->conn, &w->cq);
    if (ret == 0 && pthread_create(&w->thread, NULL, function, w) != 0)
        ret = ERR_SYSTEM;
    return ret;
}

/* Thread n uses connection, local and remote region n. imm=0: no immediate data; atomic=0: no
 * atomic write; apart=1: every second thread only exchanges messages, and the others do all the
 * rest. */
static int run_threads(const struct args *args, void *(*function)(void *)) {
    static struct worker workers[MAX_OTHERS];
    size_t count = arg_slot(args, "threads", MAX_OTHERS + 1);
    int ret = 0;
    memset(workers, 0, sizeof(workers));
    for (size_t i = 0; i < count; i++)
        if (start(&workers[i], i, function, args) != 0)
            bad_script("thread %zu does not start", i);
    for (size_t i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        reply("rounds%zu=%llu", i, (unsigned long long)workers[i].rounds);
        if (workers[i].ret != 0 && ret == 0) {
            ret = workers[i].ret;
            reply("thread=%zu in=%s status=%d", i,
                  workers[i].failed_in ? workers[i].failed_in : "echo", workers[i].status);
        }
    }
    return ret;
}

static int do_load(const struct args *args) {
    return run_threads(args, work);
}

static int do_echo(const struct args *args) {
    return run_threads(args, echo);
}

/* The other side may be gone: an event reports that, and while the device keeps retrying, only
 * a disconnected queue pair completes its outstanding operations. */
static int heed_event(struct rpma_conn *conn, bool is_last) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    int ret = rpma_conn_next_event(conn, &event);
    if (ret != 0)
        return ret;
    reply("event=%s", event == RPMA_CONN_CLOSED ? "CLOSED" : "another");
    ret = rpma_conn_disconnect(conn);
    return ret == 0 && is_last ? ERR_CLOSED : ret;
}

int await_either(struct rpma_conn *conn, struct rpma_cq *cq, struct ibv_wc *wc,
                 bool event_is_last) {
    struct pollfd fds[2] = {{.events = POLLIN}, {.events = POLLIN}};
    rpma_cq_get_fd(cq, &fds[0].fd);
    rpma_conn_get_event_fd(conn, &fds[1].fd);
    for (;;) {
        int ret = rpma_cq_get_wc(cq, 1, wc, NULL);
        if (ret == 0)
            return wc->status == IBV_WC_SUCCESS ? 0 : RPMA_E_PROVIDER;
        if (ret != RPMA_E_NO_COMPLETION)
            return ret;
        poll(fds, 2, -1);
        ret = 0;
        if ((fds[0].revents & POLLIN) != 0)
            ret = rpma_cq_wait(cq);
        else if ((fds[1].revents & POLLIN) != 0)
            ret = heed_event(conn, event_is_last);
        if (ret != 0 && ret != RPMA_E_NO_COMPLETION)
            return ret;
    }
}

/* Writes count blocks, each to its own place, with at most window of them outstanding. With
 * last=1 an event of the connection ends the load, because no completion need follow. */
static int do_write_blocks(const struct args *args) {
    struct operation {
        struct rpma_conn *conn;
        struct rpma_mr_local *mr;
        struct rpma_mr_remote *remote;
    } o = {the_conn(args), world.mr[arg_slot(args, "mr", MAX_REGIONS)],
           world.remote[arg_slot(args, "rmr", MAX_REGIONS)]};
    uint64_t count = arg_number(args, "count");
    uint64_t window = arg_number(args, "window");
    size_t len = arg_number(args, "len");
    bool event_is_last = arg_number_or(args, "last", 0) != 0;
    int64_t began = now_ms();
    struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
    struct rpma_cq *cq = NULL;
    uint64_t posted = 0;
    uint64_t done = 0;
    int ret = rpma_conn_get_cq(o.conn, &cq);
    while (ret == 0 && done < count) {
        if (posted < count && posted - done < window) {
            ret = rpma_write(o.conn, o.remote, posted * len, o.mr, posted * len, len,
                             RPMA_F_COMPLETION_ALWAYS, (const void *)(uintptr_t)posted);
            posted += ret == 0;
        } else {
            ret = await_either(o.conn, cq, &wc, event_is_last);
            if (ret == 0 && wc.wr_id != done)
                ret = ERR_MISMATCH;
            done += ret == 0;
        }
    }
    reply("done=%llu ms=%lld status=%d", (unsigned long long)done,
          (long long)(now_ms() - began), wc.status);
    return ret;
}

const struct command load_commands[] = {
    {"load", do_load},
    {"echo", do_echo},
    {"write-blocks", do_write_blocks},
    {NULL, NULL},
};
