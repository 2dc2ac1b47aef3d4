// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch_rpma.c -- lists posted with librpma: a batch prepared once, a batch built for each
// post, or an array filled for each post

#include "loops.h"
#include "rpma_setup.h"

enum { MAX_WORKS = 128, MAX_SGES = 8, MAX_RECEIVES = 16 };

void add_settings(struct rpma_conn_cfg *cfg) {
    must(rpma_conn_cfg_set_max_sge(cfg, MAX_SGES) == 0, "rpma_conn_cfg_set_max_sge");
}

static struct rpma_batch *batch;

// Each function sets the members of the operations of one list entry, as batch_verbs.c does,
// and returns their number. The other members are 0: a struct is cleared once.
#define OPERATION static inline __attribute__((always_inline)) unsigned

OPERATION describe(struct rpma_work *work, enum rpma_work_type type, int flags) {
    work->type = type;
    work->flags = flags;
    work->op_context = NULL;
    return 1;
}

OPERATION describe_remote(struct rpma_work *work, enum rpma_work_type type,
                          const struct rpma_mr_remote *region, int flags) {
    work->remote = region;
    work->remote_offset = 0;
    return describe(work, type, flags);
}

OPERATION describe_write(struct rpma_work *work) {
    work->local = (struct rpma_sge){.mr = local, .len = TRANSFER_BYTES};
    return describe_remote(work, RPMA_WORK_WRITE, remote, RPMA_F_COMPLETION_ALWAYS);
}

OPERATION describe_read(struct rpma_work *work) {
    work->local = (struct rpma_sge){.mr = local, .len = TRANSFER_BYTES};
    return describe_remote(work, RPMA_WORK_READ, remote, RPMA_F_COMPLETION_ALWAYS);
}

OPERATION describe_send(struct rpma_work *work) {
    work->local = (struct rpma_sge){.mr = local, .len = TRANSFER_BYTES};
    return describe(work, RPMA_WORK_SEND, RPMA_F_COMPLETION_ALWAYS);
}

OPERATION describe_flush(struct rpma_work *work) {
    work->flush_type = RPMA_FLUSH_TYPE_PERSISTENT;
    work->flush_len = TRANSFER_BYTES;
    return describe_remote(work, RPMA_WORK_FLUSH, remote, RPMA_F_COMPLETION_ALWAYS);
}

OPERATION describe_atomicwrite(struct rpma_work *work) {
    work->value = 0;
    return describe_remote(work, RPMA_WORK_ATOMIC_WRITE, remote, RPMA_F_COMPLETION_ALWAYS);
}

OPERATION describe_unsignaled_write(struct rpma_work *work) {
    describe_write(work);
    work->flags = RPMA_F_COMPLETION_ON_ERROR;
    return 1;
}

OPERATION describe_write_and_flush(struct rpma_work *work) {
    describe_unsignaled_write(work);
    return 1 + describe_flush(work + 1);
}

// Memory for remote atomics: only packed private data advertises it, not a descriptor.
static struct rpma_mr_remote *atomics;

static void advertise_atomics(void) {
    static uint64_t word;
    struct rpma_mr_local *mr;
    char packed[64];
    struct rpma_conn_private_data offer = {packed, sizeof(packed)};
    uint32_t regions = 1;
    must(rpma_mr_reg(peer, &word, sizeof(word), RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_ATOMIC,
                     &mr) == 0,
         "rpma_mr_reg");
    must(rpma_conn_private_data_pack((const struct rpma_mr_local *const *)&mr, 1, NULL, NULL, 0,
                                     &offer) == 0,
         "rpma_conn_private_data_pack");
    must(rpma_conn_private_data_unpack(&offer, &atomics, &regions, NULL, NULL, NULL) == 0,
         "rpma_conn_private_data_unpack");
}

OPERATION describe_atomic(struct rpma_work *work) {
    work->local = (struct rpma_sge){.mr = local, .len = sizeof(work->value)};
    work->value = 0;
    return describe_remote(work, RPMA_WORK_FETCH_ADD, atomics, RPMA_F_COMPLETION_ALWAYS);
}

typedef unsigned describe_function(struct rpma_work *work);

// Adds `length` entries to the batch.
static inline __attribute__((always_inline)) void fill(unsigned length,
                                                       describe_function *describe) {
    static struct rpma_work work[2];
    for (unsigned i = 0; i < length; i++) {
        const unsigned used = describe(work);
        for (unsigned n = 0; n < used; n++)
            must(rpma_batch_add(batch, &work[n]) == 0, "rpma_batch_add");
    }
}

// Adds an operation, as a program that was written from the manual does: it clears the struct
// and sets all members that the operation has. Its offset and context are those of entry i.
static inline __attribute__((always_inline)) void add_cleared(describe_function *describe,
                                                              unsigned i, size_t local_offset) {
    static char contexts[MAX_WORKS];
    struct rpma_work work = {0};
    describe(&work);
    work.op_context = &contexts[i];
    work.remote_offset = (size_t)i * ATOMIC_BYTES;
    work.local.offset = local_offset;
    must(rpma_batch_add(batch, &work) == 0, "rpma_batch_add");
}

static inline __attribute__((always_inline)) void clear_write(unsigned i) {
    add_cleared(describe_write, i, (size_t)i * ATOMIC_BYTES);
}

static inline __attribute__((always_inline)) void clear_write_and_flush(unsigned i) {
    add_cleared(describe_unsignaled_write, i, (size_t)i * ATOMIC_BYTES);
    add_cleared(describe_flush, i, 0);
}

static inline __attribute__((always_inline)) void open_batch(struct rpma_conn *through) {
    must(rpma_batch_new(through, MAX_WORKS, &batch) == 0, "rpma_batch_new");
}

static inline __attribute__((always_inline)) void prepared(struct rpma_conn *through,
                                                           unsigned length,
                                                           describe_function *describe,
                                                           unsigned long times) {
    open_batch(through);
    fill(length, describe);
    for (unsigned long i = 0; i < times; i++)
        must(rpma_batch_post(batch, NULL) == 0, "rpma_batch_post");
    rpma_batch_delete(&batch);
}

static inline __attribute__((always_inline)) void built(struct rpma_conn *through,
                                                        unsigned length,
                                                        describe_function *describe,
                                                        unsigned long times) {
    open_batch(through);
    for (unsigned long i = 0; i < times; i++) {
        must(rpma_batch_reset(batch) == 0, "rpma_batch_reset");
        fill(length, describe);
        must(rpma_batch_post(batch, NULL) == 0, "rpma_batch_post");
    }
    rpma_batch_delete(&batch);
}

// The same with structs that are cleared; add adds the operations of one list entry.
static inline __attribute__((always_inline)) void cleared(struct rpma_conn *through,
                                                          unsigned length,
                                                          void (*add)(unsigned),
                                                          unsigned long times) {
    open_batch(through);
    for (unsigned long i = 0; i < times; i++) {
        must(rpma_batch_reset(batch) == 0, "rpma_batch_reset");
        for (unsigned n = 0; n < length; n++)
            add(n);
        must(rpma_batch_post(batch, NULL) == 0, "rpma_batch_post");
    }
    rpma_batch_delete(&batch);
}

static inline __attribute__((always_inline)) void array(struct rpma_conn *through,
                                                        unsigned length,
                                                        describe_function *describe,
                                                        unsigned long times) {
    struct rpma_work work[MAX_WORKS] = {0};
    for (unsigned long i = 0; i < times; i++) {
        unsigned used = 0;
        // Not unrolled: the code that fills a list must not depend on its length.
#pragma GCC unroll 1
        for (unsigned n = 0; n < length; n++)
            used += describe(&work[used]);
        must(rpma_post(through, work, used, NULL) == 0, "rpma_post");
    }
}

// Posts an array that was filled once.
static inline __attribute__((always_inline)) void ready(struct rpma_conn *through,
                                                        unsigned length,
                                                        describe_function *describe,
                                                        unsigned long times) {
    struct rpma_work work[MAX_WORKS] = {0};
    for (unsigned n = 0; n < length; n++)
        describe(&work[n]);
    for (unsigned long i = 0; i < times; i++)
        must(rpma_post(through, work, length, NULL) == 0, "rpma_post");
}

// Changes the remote offset of each operation of a prepared list, without posting it.
static inline __attribute__((always_inline)) void set(struct rpma_conn *through,
                                                      unsigned length,
                                                      describe_function *describe,
                                                      unsigned long times) {
    struct rpma_work work = {0};
    open_batch(through);
    fill(length, describe);
    describe(&work);
    for (unsigned long i = 0; i < times; i++)
        for (unsigned n = 0; n < length; n++) {
            work.remote_offset = n * ATOMIC_BYTES;
            must(rpma_batch_set(batch, n, &work) == 0, "rpma_batch_set");
        }
    rpma_batch_delete(&batch);
}

// Each write has a list of `length` SGEs.
static inline __attribute__((always_inline)) void write_sges(unsigned length,
                                                             unsigned long times) {
    struct rpma_work work = {0};
    for (unsigned long i = 0; i < times; i++) {
        struct rpma_sge sgl[MAX_SGES];
        describe_write(&work);
        for (unsigned n = 0; n < length; n++)
            sgl[n] = (struct rpma_sge){.mr = local, .len = TRANSFER_BYTES};
        work.sgl = sgl;
        work.nsge = length;
        must(rpma_post(conn, &work, 1, NULL) == 0, "rpma_post");
    }
}

static void receives(unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        struct rpma_receive receive[MAX_RECEIVES];
        for (unsigned n = 0; n < MAX_RECEIVES; n++)
            receive[n] = (struct rpma_receive){.local = {.mr = local, .len = TRANSFER_BYTES}};
        must(rpma_recv_many(conn, receive, MAX_RECEIVES, NULL) == 0, "rpma_recv_many");
    }
}

static void take_event_and_arm(unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        must(rpma_cq_take_event(cq) == 0, "rpma_cq_take_event");
        must(rpma_cq_arm(cq, false) == 0, "rpma_cq_arm");
    }
}

static void atomics_1(unsigned long times) {
    advertise_atomics();
    array(conn, 1, describe_atomic, times);
}

static void atomics_4(unsigned long times) {
    advertise_atomics();
    array(conn, 4, describe_atomic, times);
}

static void refused(unsigned long times) {
    struct rpma_work work = {0};
    for (unsigned long i = 0; i < times; i++) {
        describe_write(&work);
        must(rpma_post(full_conn, &work, 1, NULL) == RPMA_E_AGAIN, "rpma_post");
    }
}

static void refused_unlogged(unsigned long times) {
    log_refusals(false);
    refused(times);
    log_refusals(true);
}

#define LOOP(method, what, length, through, describe)             \
    static void method##_##what##_##length(unsigned long times) { \
        method(through, length, describe, times);                 \
    }
#define METHODS(what, length, through, describe)    \
    LOOP(prepared, what, length, through, describe) \
    LOOP(built, what, length, through, describe)    \
    LOOP(array, what, length, through, describe)
#define KIND(what)                               \
    LOOP(ready, what, 1, conn, describe_##what)  \
    LOOP(ready, what, 16, conn, describe_##what) \
    LOOP(built, what, 16, conn, describe_##what) \
    LOOP(set, what, 16, conn, describe_##what)
#define LOOPS(length)                              \
    METHODS(write, length, conn, describe_write)   \
    LOOP(set, write, length, conn, describe_write) \
    METHODS(write_flush, length, conn, describe_write_and_flush)
#define NATIVE_LOOPS(length) \
    METHODS(write_native_flush, length, native_conn, describe_write_and_flush)
#define NATIVE_CLEARED(length) \
    LOOP(cleared, write_native_flush, length, native_conn, clear_write_and_flush)

#include "batch_loops.h"
