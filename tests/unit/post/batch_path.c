// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch_path.c -- batches on devices with native flush and atomic write: the provider call
// that posts a list depends on the capabilities of the peer

#include "operation.h"

#include <stdlib.h>

enum { BOTH = SERVES | SERVES_FLUSH | SERVES_ATOMIC_WRITE };
#define POST_SEND "ibv_post_send"

static void new_batch(bool flush, bool atomic_write) {
    fake_profile()->has_native_flush = flush;
    fake_profile()->has_native_atomic_write = atomic_write;
    fixture_conn(&w, &(const struct shape){0});
    MUST(rpma_batch_new(w.h.conn, 4, &w.h.batch));
}

static void add_work(enum rpma_work_type kind) {
    const struct rpma_work work = operation_of(&w, kind);
    MUST(rpma_batch_add(w.h.batch, &work));
}

static void expect_requests(const char *calls, uint32_t count) {
    uint32_t posted = 77;
    MUST(rpma_batch_post(w.h.batch, &posted));
    EXPECT_CALLS(calls);
    assert_int_equal(posted, count);
    assert_int_equal(fake_posted_count(), count);
}

// The path depends on the operations in the list only, and a reset restores the fast path.
TEST_THAT(simple_lists_take_the_fast_path) {
    new_batch(true, true);
    add_work(RPMA_WORK_WRITE);
    expect_requests(POST_SEND, 1);
    add_work(RPMA_WORK_FLUSH);
    expect_requests(BUILD_FLUSHES ? "ibv_wr_start ibv_wr_rdma_write ibv_wr_set_sge_list "
                                    "ibv_wr_flush ibv_wr_complete"
                                  : POST_SEND,
                    2);
    MUST(rpma_batch_reset(w.h.batch));
    add_work(RPMA_WORK_WRITE);
    expect_requests(POST_SEND, 1);
}

#ifdef TEST_NATIVE_FLUSH
// The device checks the bounds of a native flush, because the descriptor may be inaccurate. A
// batch checks them before an emulated flush.
TEST_THAT(native_flush_leaves_bounds_to_the_device) {
    new_batch(true, false);
    struct rpma_work flush = operation_of(&w, RPMA_WORK_FLUSH);
    uint32_t posted = 77;
    flush.remote_offset = FIXTURE_REMOTE_SIZE;
    MUST(rpma_batch_add(w.h.batch, &flush));
    expect_requests("ibv_wr_start ibv_wr_flush ibv_wr_complete", 1);
    fixture_apply(&w, SERVES);
    EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_INVAL, "(emulated flush)",
                 "remote_offset >= size of the remote region (emulated flush)",
                 .logs = "remote_offset", .before = "batch[0]: ");
    assert_int_equal(posted, 0);
}
#endif

// ---- the capabilities of the peer ----------------------------------------------------------

// The next post uses the advertised capabilities for a flush and an atomic write, at any
// position in the list. No other operation depends on them.
TEST_THAT(batch_follows_the_peer_capabilities) {
    enum { SIZE = 4, MISSING = SIZE };
    static const uint8_t capabilities[] = {
        SERVES, BOTH, SERVES | SERVES_FLUSH, SERVES | SERVES_ATOMIC_WRITE, UNADVERTISED,
        SERVES, BOTH};
    for (uint32_t flush = 0; flush <= MISSING; flush++)
        for (uint32_t atomic = 0; atomic <= MISSING; atomic++) {
            if (flush == atomic && flush != MISSING)
                continue;
            fixture_reset();
            new_batch(true, true);
            for (uint32_t i = 0; i < SIZE; i++)
                add_work(i == flush    ? RPMA_WORK_FLUSH
                         : i == atomic ? RPMA_WORK_ATOMIC_WRITE
                                       : RPMA_WORK_WRITE);
            for (size_t i = 0; i < 2 * LENGTH(capabilities); i++) { // two posts for each
                const uint8_t served = capabilities[i / 2];
                const bool flushes =
                    BUILD_FLUSHES && (served == UNADVERTISED || served & SERVES_FLUSH);
                const bool writes = BUILD_WRITES_ATOMICALLY &&
                                    (served == UNADVERTISED || served & SERVES_ATOMIC_WRITE);
                if (i % 2 == 0)
                    fixture_apply(&w, served);
                MUST(rpma_batch_post(w.h.batch, NULL));
                assert_int_equal(fake_count("ibv_post_send"),
                                 !(flushes && flush != MISSING) &&
                                     !(writes && atomic != MISSING));
                assert_int_equal(fake_posted_count(), SIZE);
                for (uint32_t k = 0; k < SIZE; k++)
                    assert_int_equal(fake_posted(k)->opcode,
                                     k == flush && flushes   ? SIM_WR_FLUSH
                                     : k == flush            ? (int)IBV_WR_RDMA_READ
                                     : k == atomic && writes ? SIM_WR_ATOMIC_WRITE
                                                             : (int)IBV_WR_RDMA_WRITE);
                if (atomic == MISSING)
                    continue;
                assert_int_equal(fake_posted(atomic)->flags & IBV_SEND_INLINE,
                                 writes ? 0 : IBV_SEND_INLINE);
                assert_memory_equal(fake_posted(atomic)->inlined, "8 bytes", 8);
            }
        }
}

// A list of 30 native operations does not fit into a send queue of 10, which the fake enlarges
// to 15.
TEST_THAT(native_lists_are_split_to_fit) {
    enum { OPERATIONS = 30 };
    struct rpma_work work[OPERATIONS];
    new_batch(true, true);
    fake_device()->fast = true; // otherwise the first part fills the queue
    MUST(rpma_batch_delete(&w.h.batch));
    MUST(rpma_batch_new(w.h.conn, OPERATIONS, &w.h.batch));
    for (int i = 0; i < OPERATIONS; i++) {
        work[i] = operation_of(&w, RPMA_WORK_FLUSH);
        MUST(rpma_batch_add(w.h.batch, &work[i]));
    }
    for (int by_array = 0; by_array < 2; by_array++) {
        uint32_t posted = 77;
        unit_begin();
        MUST(by_array ? rpma_post(w.h.conn, work, OPERATIONS, &posted)
                      : rpma_batch_post(w.h.batch, &posted));
        assert_int_equal(posted, OPERATIONS);
        assert_int_equal(fake_posted_count(), OPERATIONS);
        assert_int_equal(fake_count("ibv_wr_complete"), BUILD_FLUSHES ? 2 : 0);
    }
}

static void allow(bool persistent) {
    MUST(rpma_peer_cfg_set_direct_write_to_pmem(w.h.pcfg, persistent));
    MUST(rpma_conn_apply_remote_peer_cfg(w.h.conn, w.h.pcfg));
}

// The line names the first forbidden flush. Nothing is posted, not even the rest of a
// partially posted list, until flushes are allowed again or the batch has no flush.
TEST_THAT(forbidden_flush_rejects_the_list) {
    for (int i = 0; i < 4; i++) {
        const bool native = i % 2, in_part = i / 2;
        uint32_t posted = 77;
        fixture_reset();
        new_batch(native, native);
        add_work(RPMA_WORK_WRITE);
        add_work(RPMA_WORK_WRITE);
        add_work(RPMA_WORK_FLUSH);
        add_work(RPMA_WORK_FLUSH);
        if (in_part) { // a native list is posted completely or not at all
            fake_fail("refuse ibv_post_send", 1, ENOSPC);
            assert_int_equal(rpma_batch_post(w.h.batch, &posted), RPMA_E_AGAIN);
            fake_faults_off();
        }
        const uint32_t taken = in_part ? posted : 0;
        assert_int_equal(taken, in_part && !(native && BUILD_FLUSHES));
        allow(false);
        for (int again = 0; again < 2; again++) {
            posted = 77;
            EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_NOSUPP,
                         "the connection no longer allows a flush of the batch",
                         "direct write to PMem", .before = "batch[2]: ");
            assert_int_equal(posted, 0);
            assert_int_equal(fake_posted_count(), 0);
        }
        allow(true);
        MUST(rpma_batch_post(w.h.batch, &posted));
        assert_int_equal(posted, 4 - taken);
        assert_int_equal(fake_posted_count(), 4 - taken);
        assert_int_equal(fake_count("ibv_wr_flush"), native && BUILD_FLUSHES ? 2 : 0);
        allow(false);
        const struct rpma_work write = operation_of(&w, RPMA_WORK_WRITE);
        MUST(rpma_batch_set(w.h.batch, 2, &write));
        EXPECT_ERROR(rpma_batch_post(w.h.batch, NULL), RPMA_E_NOSUPP,
                     "no longer allows a flush", "direct write to PMem",
                     .before = "batch[3]: ");
        MUST(rpma_batch_set(w.h.batch, 3, &write));
        expect_requests(POST_SEND, 4);
        const struct rpma_work flush = operation_of(&w, RPMA_WORK_FLUSH);
        allow(true);
        MUST(rpma_batch_set(w.h.batch, 0, &flush));
        allow(false);
        EXPECT_ERROR(rpma_batch_post(w.h.batch, NULL), RPMA_E_NOSUPP,
                     "no longer allows a flush", "direct write to PMem",
                     .before = "batch[0]: ");
    }
}
