// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch_rpma.c -- batches as a user of librpma writes them: prepared once, or built for each
// post

#include "loops.h"
#include "rpma_side.h"

static struct rpma_batch *batch;

static void add_write(void) {
    must(rpma_batch_write(batch, remote, 0, local, 0, TRANSFER_BYTES, RPMA_F_COMPLETION_ALWAYS,
                          NULL) == 0,
         "rpma_batch_write");
}

static void add_write_and_flush(void) {
    must(rpma_batch_write(batch, remote, 0, local, 0, TRANSFER_BYTES,
                          RPMA_F_COMPLETION_ON_ERROR, NULL) == 0,
         "rpma_batch_write");
    must(rpma_batch_flush(batch, remote, 0, TRANSFER_BYTES, RPMA_FLUSH_TYPE_PERSISTENT,
                          RPMA_F_COMPLETION_ALWAYS, NULL) == 0,
         "rpma_batch_flush");
}

// Everything into one list.
static inline void fill(struct rpma_conn *through, unsigned length, void (*add)(void)) {
    must(rpma_batch_new(through, 2 * length, &batch) == 0, "rpma_batch_new");
    for (unsigned i = 0; i < length; i++)
        add();
}

static inline void post_prepared(unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_batch_post(batch, NULL) == 0, "rpma_batch_post");
}

static inline void prepared(struct rpma_conn *through, unsigned length, void (*add)(void),
                            unsigned long times) {
    fill(through, length, add);
    post_prepared(times);
    rpma_batch_delete(&batch);
}

static inline void built(struct rpma_conn *through, unsigned length, void (*add)(void),
                         unsigned long times) {
    fill(through, length, add);
    for (unsigned long i = 0; i < times; i++) {
        must(rpma_batch_reset(batch) == 0, "rpma_batch_reset");
        for (unsigned n = 0; n < length; n++)
            add();
        must(rpma_batch_post(batch, NULL) == 0, "rpma_batch_post");
    }
    rpma_batch_delete(&batch);
}

#define LOOP(way, what, length, through, add)                  \
    static void way##_##what##_##length(unsigned long times) { \
        way(through, length, add, times);                      \
    }
#define LOOPS(length)                                              \
    LOOP(prepared, write, length, conn, add_write)                 \
    LOOP(built, write, length, conn, add_write)                    \
    LOOP(prepared, write_flush, length, conn, add_write_and_flush) \
    LOOP(built, write_flush, length, conn, add_write_and_flush)
#define NATIVE_LOOPS(length)                                                     \
    LOOP(prepared, write_native_flush, length, native_conn, add_write_and_flush) \
    LOOP(built, write_native_flush, length, native_conn, add_write_and_flush)

#include "batch_loops.h"
