// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch_path.c -- batches for devices that flush and write atomically by themselves: which of
// the two ways a list is posted, and what the device then decides

#include "world.h"

#include <stdlib.h>

static struct world w;

static void new_batch(bool flush, bool atomic_write) {
    fake_device()->native_flush = flush;
    fake_device()->native_atomic_write = atomic_write;
    world_conn(&w, &(const struct shape){0});
    MUST(rpma_batch_new(w.h.conn, 3, &w.h.batch));
}

static void add_write(void) {
    MUST(rpma_batch_write(w.h.batch, w.h.remote, 16, w.h.mr, 24, 8, RPMA_F_COMPLETION_ON_ERROR,
                          NULL));
}

static void add_flush(void) {
    MUST(rpma_batch_flush(w.h.batch, w.h.remote, 16, 8, RPMA_FLUSH_TYPE_PERSISTENT,
                          RPMA_F_COMPLETION_ON_ERROR, NULL));
}

// Only what is in the list decides, and a reset makes a batch an ordinary one again.
static void ordinary_lists_go_the_ordinary_way(void **state) {
    (void)state;
    new_batch(true, true);
    add_write();
    MUST(rpma_batch_post(w.h.batch, NULL));
    EXPECT_CALLS("ibv_post_send");
    add_flush();
    MUST(rpma_batch_post(w.h.batch, NULL));
    EXPECT_CALLS(BUILD_FLUSHES ? "ibv_wr_start ibv_wr_rdma_write ibv_wr_set_sge_list "
                                 "ibv_wr_flush ibv_wr_complete"
                               : "ibv_post_send");
    MUST(rpma_batch_reset(w.h.batch));
    add_write();
    MUST(rpma_batch_post(w.h.batch, NULL));
    EXPECT_CALLS("ibv_post_send");
    world_drop(&w);
}

// Of a flush that the other side did not allow, nothing stays, not even the way of posting.
static void refused_flush_leaves_an_ordinary_list(void **state) {
    (void)state;
    new_batch(true, true);
    add_write();
    MUST(rpma_peer_cfg_set_direct_write_to_pmem(w.h.pcfg, false));
    MUST(rpma_conn_apply_remote_peer_cfg(w.h.conn, w.h.pcfg));
    EXPECT_ERROR(
        rpma_batch_flush(w.h.batch, w.h.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, 1, NULL),
        RPMA_E_NOSUPP, "direct write to PMem not enabled", "direct write to PMem");
    MUST(rpma_batch_post(w.h.batch, NULL));
    EXPECT_CALLS("ibv_post_send");
    assert_int_equal(fake_posted_count(), 1);
    world_drop(&w);
}

// The device knows the bounds better than the descriptor: a native flush leaves them to it.
static void native_flush_leaves_bounds_to_the_device(void **state) {
    (void)state;
    new_batch(true, false);
    if (BUILD_FLUSHES)
        MUST(rpma_batch_flush(w.h.batch, w.h.remote, WORLD_REMOTE_SIZE, 8,
                              RPMA_FLUSH_TYPE_VISIBILITY, 1, NULL));
    else
        EXPECT_ERROR(rpma_batch_flush(w.h.batch, w.h.remote, WORLD_REMOTE_SIZE, 8,
                                      RPMA_FLUSH_TYPE_VISIBILITY, 1, NULL),
                     RPMA_E_INVAL, "(emulated flush)",
                     "dst_offset >= size of the remote region (emulated flush)",
                     .logs = "dst_offset");
    world_drop(&w);
}

int main(void) {
    unsetenv("RPMA_FLUSH");
    const struct CMUnitTest tests[] = {
        TEST(ordinary_lists_go_the_ordinary_way),
        TEST(refused_flush_leaves_an_ordinary_list),
        TEST(native_flush_leaves_bounds_to_the_device),
    };
    return UNIT_RUN("batch_path", tests);
}
