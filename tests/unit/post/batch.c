// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.c -- batches: order, posting again, their memory, and what a batch outlives

#include "batches.h"

#include <stdio.h>

// ---- posting -------------------------------------------------------------------------------

TEST_THAT(operations_reach_the_device_at_once) {
    batch_begin(&w);
    for (unsigned count = 1; count <= MOST; count++) {
        MUST(rpma_batch_reset(w.h.batch));
        batch_add(&w, 0, count);
        EXPECT_CALLS("");
        assert_int_equal(fake_posted_count(), 0);
        batch_post_all(&w, 0, count);
        assert_int_equal(fake_last("ibv_post_send")->requests, count);
    }
}

TEST_THAT(nothing_is_posted_of_an_empty_batch) {
    batch_begin(&w);
    batch_post_all(&w, 0, 0);
    MUST(rpma_batch_post(w.h.batch, NULL));
    EXPECT_CALLS("");
    batch_add(&w, 0, 2);
    MUST(rpma_batch_reset(w.h.batch));
    EXPECT_CALLS("");
    batch_post_all(&w, 0, 0);
}

// An operation refers to a region, whose bytes are read at each post; the 8 bytes of an atomic
// write are copied.
TEST_THAT(batch_is_posted_a_thousand_times) {
    batch_begin(&w);
    struct rpma_work atomic = batch_write(&w, OPS);
    atomic.type = RPMA_WORK_ATOMIC_WRITE;
    memcpy(&atomic.value, "8 bytes", sizeof(atomic.value));
    batch_add(&w, 0, OPS);
    MUST(rpma_batch_add(w.h.batch, &atomic));
    for (int i = 0; i < 1000; i++) {
        uint32_t posted = 0;
        memset(w.memory, i, sizeof(w.memory));
        memset(&atomic, i, sizeof(atomic));
        MUST(rpma_batch_post(w.h.batch, &posted));
        EXPECT_CALLS("ibv_post_send");
        assert_int_equal(posted, OPS + 1);
        assert_int_equal(fake_posted_count(), OPS + 1);
        for (unsigned k = 0; k < OPS; k++)
            assert_int_equal(fake_posted(k)->sge.addr, (uintptr_t)w.memory + k);
        assert_int_equal(fake_posted(OPS)->wr_id, OPS);
        assert_memory_equal(fake_posted(OPS)->inlined, "8 bytes", 8);
    }
}

TEST_THAT(operations_are_added_behind_posted_ones) {
    batch_begin(&w);
    for (unsigned count = 1; count <= MOST; count++) {
        batch_add(&w, count - 1, 1);
        batch_post_all(&w, 0, count);
    }
    const struct rpma_work more = batch_write(&w, MOST);
    EXPECT_ERROR(rpma_batch_add(w.h.batch, &more), RPMA_E_INVAL, "the batch is full",
                 "the batch is full", .logs = "max_ops is 8;");
    batch_post_all(&w, 0, MOST);
    MUST(rpma_batch_reset(w.h.batch));
    batch_add(&w, 3, MOST);
    batch_post_all(&w, 3, MOST);
}

TEST_THAT(no_batch_is_longer_than_a_send_queue) {
    static const uint32_t sizes[] = {9, UINT32_MAX};
    const struct shape shape = {.name = "plain"};
    fake_device()->max_wr = 8;
    world_peer(&w);
    MUST(rpma_conn_cfg_new(&w.h.cfg));
    MUST(rpma_conn_cfg_set_sq_size(w.h.cfg, 1));
    MUST(rpma_conn_cfg_set_rq_size(w.h.cfg, 1));
    world_ask(&w, &shape);
    world_connect(&w, &shape);
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        char logs[64];
        snprintf(logs, sizeof(logs), "max_ops is %u, ", sizes[i]);
        WATCH(w.h);
        EXPECT_ERROR(rpma_batch_new(w.h.conn, sizes[i], &w.h.batch), RPMA_E_INVAL,
                     "max_qp_wr of the device", "max_ops > max_qp_wr of the device",
                     .logs = logs);
        assert_non_null(strstr(logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message, "has 8 at most"));
    }
    MUST(rpma_batch_new(w.h.conn, 8, &w.h.batch));
}

// ---- life ----------------------------------------------------------------------------------

TEST_THAT(batch_needs_memory) {
    batch_begin(&w);
    MUST(rpma_batch_delete(&w.h.batch));
    EXPECT_CALLS("");
    for (unsigned i = 0; i < 2; i++) { // the two allocations
        fake_fail("malloc", 1 + i, ENOMEM);
        WATCH(w.h);
        EXPECT_ERROR(rpma_batch_new(w.h.conn, MOST, &w.h.batch), RPMA_E_NOMEM,
                     "allocation failed", "out of memory");
        assert_int_equal(fake_faults_fired(), i + 1);
        fake_faults_off();
    }
}

// A batch allocates all its memory when it is made, and frees all of it.
TEST_THAT(memory_is_taken_once) {
    batch_begin(&w);
    const size_t held = fake_bytes_held();
    fake_fail_from("malloc", 1, ENOMEM);
    batch_add(&w, 0, MOST);
    batch_post_all(&w, 0, MOST);
    assert_int_equal(fake_bytes_held(), held);
    fake_faults_off();
    MUST(rpma_batch_delete(&w.h.batch));
    assert_true(fake_bytes_held() < held);
}

// Between posts, with operations outstanding, and after the connection is gone.
TEST_THAT(batch_is_deleted_at_any_time) {
    for (int stage = 0; stage < 4; stage++) {
        fake_reset();
        batch_begin(&w);
        if (stage > 0)
            batch_add(&w, 0, OPS);
        if (stage > 1)
            batch_post_all(&w, 0, OPS);
        if (stage == 3) {
            MUST(rpma_conn_delete(&w.h.conn));
        }
        MUST(rpma_batch_delete(&w.h.batch));
        EXPECT_CALLS("");
        assert_null(w.h.batch);
        world_drop(&w);
    }
}
