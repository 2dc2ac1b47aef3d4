// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// atomics.c -- commands that use remote atomics many times, as many clients do at once

#include <string.h>

#include "await.h"
#include "peer.h"

/* Words of this side: the result of an atomic, and the number that the lock guards. */
enum { BEFORE = 0, NUMBER = 8 };

/* rmr=: a lock at roff=, and behind it a number. mr=: 16 bytes of this side. */
struct words {
    struct rpma_conn *conn;
    struct rpma_cq *cq;
    struct rpma_mr_local *mr;
    char *base;
    struct rpma_mr_remote *remote;
    size_t roff;
};

static struct words the_words(const struct args *args) {
    const size_t mr = arg_slot(args, "mr", MAX_REGIONS);
    struct words words = {.conn = the_conn(args),
                          .cq = the_queue(args),
                          .mr = world.mr[mr],
                          .base = world.memory[mr].base,
                          .remote = world.remote[arg_slot(args, "rmr", MAX_REGIONS)],
                          .roff = arg_number_or(args, "roff", 0)};
    return words;
}

static uint64_t word_of(const struct words *w, size_t offset) {
    uint64_t word;
    memcpy(&word, w->base + offset, sizeof(word));
    return word;
}

/* Posts the operations and waits for the last one, which has a completion. */
static int perform(const struct words *w, const struct rpma_work *work, uint32_t count) {
    struct ibv_wc wc;
    const int ret = rpma_post(w->conn, work, count, NULL);
    return ret == 0 ? await_completion(w->cq, &wc) : ret;
}

static struct rpma_work atomic(const struct words *w, enum rpma_work_type type,
                               uint64_t compare, uint64_t value) {
    struct rpma_work work = {.type = type,
                             .remote = w->remote,
                             .remote_offset = w->roff,
                             .local = {w->mr, BEFORE, sizeof(value)},
                             .value = value,
                             .compare = compare,
                             .flags = RPMA_F_COMPLETION_ALWAYS};
    return work;
}

/* Adds 1, times= times. Each result is above the one before. */
static int do_count(const struct args *args) {
    const struct words w = the_words(args);
    const struct rpma_work add = atomic(&w, RPMA_WORK_FETCH_ADD, 0, 1);
    uint64_t above = 0;
    for (uint64_t i = arg_number(args, "times"); i > 0; i--) {
        const int ret = perform(&w, &add, 1);
        if (ret != 0)
            return ret;
        if (word_of(&w, BEFORE) < above) {
            reply("result=%llu above=%llu", (unsigned long long)word_of(&w, BEFORE),
                  (unsigned long long)above);
            return ERR_MISMATCH;
        }
        above = word_of(&w, BEFORE) + 1;
    }
    return 0;
}

/* Takes the lock by owner=, adds 1 to the number by a read and a write, and gives it back. */
static int add_under_lock(const struct words *w, uint64_t owner) {
    const struct rpma_work take = atomic(w, RPMA_WORK_COMPARE_SWAP, 0, owner);
    const struct rpma_work give = atomic(w, RPMA_WORK_COMPARE_SWAP, owner, 0);
    struct rpma_work move = {.type = RPMA_WORK_READ,
                             .remote = w->remote,
                             .remote_offset = w->roff + NUMBER,
                             .local = {w->mr, NUMBER, sizeof(owner)},
                             .flags = RPMA_F_COMPLETION_ALWAYS};
    int ret;
    do
        ret = perform(w, &take, 1);
    while (ret == 0 && word_of(w, BEFORE) != 0);
    if (ret == 0)
        ret = perform(w, &move, 1);
    if (ret != 0)
        return ret;
    const uint64_t number = word_of(w, NUMBER) + 1;
    memcpy(w->base + NUMBER, &number, sizeof(number));
    move.type = RPMA_WORK_WRITE;
    move.flags = RPMA_F_COMPLETION_ON_ERROR;
    const struct rpma_work end[] = {move, give};
    ret = perform(w, end, 2);
    return ret == 0 && word_of(w, BEFORE) != owner ? ERR_MISMATCH : ret;
}

static int do_guard(const struct args *args) {
    const struct words w = the_words(args);
    int ret = 0;
    for (uint64_t i = arg_number(args, "times"); ret == 0 && i > 0; i--)
        ret = add_under_lock(&w, arg_number(args, "owner"));
    return ret;
}

const struct command atomic_commands[] = {
    {"count", do_count},
    {"guard", do_guard},
    {NULL, NULL},
};
