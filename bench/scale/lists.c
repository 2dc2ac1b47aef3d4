// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lists.c -- the time to post a list of operations to a real device
//
//   lists ADDRESS PORT METHOD KIND LENGTH TIMES
//
// METHOD is plain (a call for each operation), array (rpma_post() of an array filled for each
// post), built (a batch filled for each post), prepared (a batch filled once), hand-built or
// hand-prepared (a list of ibv_send_wr). KIND is write, of 64 bytes, or write-flush, of 4 KiB.
// Only the post is timed, in nanoseconds for each operation. Each list has one completion, and
// the program waits for it before it posts the next list.

#include "lists.h"

#include <stdlib.h>
#include <string.h>

struct kind kind;

static struct target target;
static struct rpma_batch *batch;
static struct side side;

static void open_connection(const char *address, const char *port) {
    side = open_side(address, port, RPMA_UTIL_IBV_CONTEXT_REMOTE);
    target = connect_with_queues(&side, MAX_REQUESTS);
    must(rpma_batch_new(target.conn, MAX_REQUESTS, &batch), "rpma_batch_new");
}

// Only the last operation of a list completes.
static int flags_of(unsigned i) {
    return i + 1 == kind.length ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR;
}

static int flags_of_write(unsigned i) {
    return kind.flushes ? RPMA_F_COMPLETION_ON_ERROR : flags_of(i);
}

static void post_plain(void) {
    for (unsigned i = 0; i < kind.length; i++) {
        must(rpma_write(target.conn, target.remote, 0, side.mr, 0, kind.bytes,
                        flags_of_write(i), NULL),
             "rpma_write");
        if (kind.flushes)
            must(rpma_flush(target.conn, target.remote, 0, kind.bytes,
                            RPMA_FLUSH_TYPE_VISIBILITY, flags_of(i), NULL),
                 "rpma_flush");
    }
}

// Both set the members that a list may change. The others are 0: a struct is cleared once.
static void describe_write(struct rpma_work *work, unsigned i) {
    work->type = RPMA_WORK_WRITE;
    work->remote = target.remote;
    work->remote_offset = 0;
    work->local = (struct rpma_sge){.mr = side.mr, .len = kind.bytes};
    work->flags = flags_of_write(i);
    work->op_context = NULL;
}

static void describe_flush(struct rpma_work *work, unsigned i) {
    work->type = RPMA_WORK_FLUSH;
    work->remote = target.remote;
    work->remote_offset = 0;
    work->flush_type = RPMA_FLUSH_TYPE_VISIBILITY;
    work->flush_len = kind.bytes;
    work->flags = flags_of(i);
    work->op_context = NULL;
}

static void post_array(void) {
    static struct rpma_work work[MAX_REQUESTS];
    unsigned used = 0;
    for (unsigned i = 0; i < kind.length; i++) {
        describe_write(&work[used++], i);
        if (kind.flushes)
            describe_flush(&work[used++], i);
    }
    must(rpma_post(target.conn, work, used, NULL), "rpma_post");
}

static void fill(void) {
    static struct rpma_work write, flush;
    for (unsigned i = 0; i < kind.length; i++) {
        describe_write(&write, i);
        must(rpma_batch_add(batch, &write), "rpma_batch_add");
        if (!kind.flushes)
            continue;
        describe_flush(&flush, i);
        must(rpma_batch_add(batch, &flush), "rpma_batch_add");
    }
}

static void post_prepared(void) {
    must(rpma_batch_post(batch, NULL), "rpma_batch_post");
}

static void post_built(void) {
    must(rpma_batch_reset(batch), "rpma_batch_reset");
    fill();
    post_prepared();
}

static void wait_for_list(void) {
    take_completions(target.cq, 1);
}

static const struct method {
    const char *name;
    void (*open)(const char *address, const char *port);
    void (*prepare)(void);
    void (*post)(void);
    void (*wait)(void);
} methods[] = {
    {"plain", open_connection, NULL, post_plain, wait_for_list},
    {"array", open_connection, NULL, post_array, wait_for_list},
    {"built", open_connection, NULL, post_built, wait_for_list},
    {"prepared", open_connection, fill, post_prepared, wait_for_list},
    {"hand-built", open_by_hand, NULL, post_built_by_hand, wait_by_hand},
    {"hand-prepared", open_by_hand, build_by_hand, post_by_hand, wait_by_hand},
};

static const struct method *find_method(const char *name) {
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    fail("no such method");
}

int main(int argc, char *argv[]) {
    if (argc != 7) {
        fprintf(stderr, "usage: %s ADDRESS PORT METHOD write|write-flush LENGTH TIMES\n",
                argv[0]);
        return 2;
    }
    const struct method *method = find_method(argv[3]);
    kind.flushes = strcmp(argv[4], "write-flush") == 0;
    kind.bytes = kind.flushes ? BLOCK : MESSAGE;
    kind.length = (unsigned)number(argv[5]);
    const unsigned long times = number(argv[6]);
    if (kind.length < 1 || 2 * kind.length > MAX_REQUESTS || times < 1)
        fail("LENGTH must be 1 to 64, TIMES at least 1");
    double *taken = calloc(times, sizeof(*taken));
    if (taken == NULL)
        fail("out of memory");
    method->open(argv[1], argv[2]);
    if (method->prepare != NULL)
        method->prepare();
    method->post(); // warm-up: excludes one-time costs
    method->wait();
    for (unsigned long i = 0; i < times; i++) {
        const double start = seconds();
        method->post();
        taken[i] = seconds() - start;
        method->wait();
    }
    sort(taken, times);
    print(argv[4], taken[times / 2] * 1e9 / kind.length);
    return 0;
}
