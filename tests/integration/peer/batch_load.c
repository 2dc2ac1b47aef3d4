// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch_load.c -- commands that post batches over and over: until the connection breaks, and
// from several threads

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "load.h"
#include "operation.h"

/* The completions of one post. */
struct outcome {
    uint32_t good;
    uint32_t failed;
    int status; /* of the first operation that failed */
};

/* Each of the posted operations completes once, in order; after a failure all fail. */
static int collect(struct rpma_conn *conn, struct rpma_cq *cq, uint32_t posted,
                   struct outcome *outcome) {
    for (uint32_t i = 0; i < posted; i++) {
        struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
        int ret = await_either(conn, cq, &wc, false);
        if (ret != 0 && ret != RPMA_E_PROVIDER)
            return ret;
        if (wc.wr_id != i || (wc.status == IBV_WC_SUCCESS && outcome->failed != 0)) {
            reply("operation=%llu instead=%u status=%d", (unsigned long long)wc.wr_id, i,
                  wc.status);
            return ERR_MISMATCH;
        }
        if (wc.status == IBV_WC_SUCCESS)
            outcome->good++;
        else if (outcome->failed++ == 0)
            outcome->status = wc.status;
    }
    return 0;
}

/* Posts a batch of signaled operations with the contexts 0, 1, …; the next round begins when
 * this one has completed. Ends with the round in which an operation fails. */
static int do_post_until_broken(const struct args *args) {
    struct rpma_conn *conn = the_conn(args);
    struct rpma_batch *batch = the_batch(args);
    struct outcome outcome = {0};
    struct rpma_cq *cq = NULL;
    uint64_t rounds = 0;
    uint32_t posted = 0;
    int code = 0;
    int ret = rpma_conn_get_cq(conn, &cq);
    while (ret == 0 && code == 0 && outcome.failed == 0) {
        outcome = (struct outcome){0};
        code = rpma_batch_post(batch, &posted);
        ret = collect(conn, cq, posted, &outcome);
        rounds++;
    }
    reply("rounds=%llu post=%s posted=%u good=%u failed=%u status=%d",
          (unsigned long long)rounds, code == 0 ? "ok" : code_name(code), posted, outcome.good,
          outcome.failed, outcome.status);
    return ret;
}

/* One of several threads on one connection. The script filled its batch; the operations use the
 * memory with the thread's number: they write len bytes, read them back to the second len
 * bytes, and send the message behind those. The last operation is signaled. */
struct poster {
    pthread_t thread;
    struct shared *shared;
    size_t number;
    uint64_t posted;
    int ret;
};

struct shared {
    struct rpma_cq *cq;
    size_t len;
    uint64_t rounds;
    _Atomic uint64_t done[MAX_OTHERS]; /* by thread; any thread polls for all */
    _Atomic int failed;
};

static int poll_for_all(struct shared *shared) {
    struct ibv_wc wc;
    int ret = rpma_cq_get_wc(shared->cq, 1, &wc, NULL);
    if (ret == RPMA_E_NO_COMPLETION) {
        sched_yield();
        return 0;
    }
    if (ret == 0 && (wc.status != IBV_WC_SUCCESS || wc.wr_id >= MAX_OTHERS))
        ret = RPMA_E_PROVIDER;
    if (ret == 0)
        atomic_fetch_add(&shared->done[wc.wr_id], 1);
    return ret;
}

static int post_round(struct poster *p, uint64_t round) {
    struct shared *shared = p->shared;
    char *base = world.memory[p->number].base;
    uint64_t message[2] = {p->number, round};
    pattern_fill(base, shared->len, (uint64_t)p->number << 32 | round);
    memset(base + shared->len, 0, shared->len);
    memcpy(base + 2 * shared->len, message, sizeof(message));
    int ret = rpma_batch_post(world.batch[p->number], NULL);
    while (ret == 0 && atomic_load(&shared->done[p->number]) <= round &&
           atomic_load(&shared->failed) == 0)
        ret = poll_for_all(shared);
    if (ret == 0 && memcmp(base, base + shared->len, shared->len) != 0)
        ret = ERR_MISMATCH;
    return ret;
}

static void *post_rounds(void *argument) {
    struct poster *p = argument;
    while (p->ret == 0 && p->posted < p->shared->rounds &&
           atomic_load(&p->shared->failed) == 0) {
        p->ret = post_round(p, p->posted);
        p->posted += p->ret == 0;
    }
    if (p->ret != 0)
        atomic_store(&p->shared->failed, 1);
    return NULL;
}

/* Thread n uses batch, memory and context n. */
static int do_post_in_threads(const struct args *args) {
    static struct poster posters[MAX_OTHERS];
    static struct shared shared;
    size_t count = arg_slot(args, "threads", MAX_OTHERS + 1);
    memset(posters, 0, sizeof(posters));
    memset(&shared, 0, sizeof(shared));
    shared.len = arg_number(args, "len");
    shared.rounds = arg_number(args, "rounds");
    int ret = rpma_conn_get_cq(the_conn(args), &shared.cq);
    for (size_t i = 0; ret == 0 && i < count; i++) {
        posters[i].shared = &shared;
        posters[i].number = i;
        if (pthread_create(&posters[i].thread, NULL, post_rounds, &posters[i]) != 0)
            bad_script("thread %zu does not start", i);
    }
    for (size_t i = 0; ret == 0 && i < count; i++)
        pthread_join(posters[i].thread, NULL);
    for (size_t i = 0; i < count; i++) {
        reply("posted%zu=%llu done%zu=%llu", i, (unsigned long long)posters[i].posted, i,
              (unsigned long long)atomic_load(&shared.done[i]));
        ret = ret != 0 ? ret : posters[i].ret;
    }
    return ret;
}

const struct command batch_load_commands[] = {
    {"post-until-broken", do_post_until_broken},
    {"post-in-threads", do_post_in_threads},
    {NULL, NULL},
};
