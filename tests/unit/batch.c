// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.c -- batches: order, posting again, refusals in the middle, and what a batch outlives

#include "operation.h"

#include <stdio.h>

enum { MOST = 8, OPS = 6 };

static struct world w;

// A connection and a batch with room for MOST operations.
static void new_batch(void) {
    world_conn(&w, &(const struct shape){.max_sge = 2});
    MUST(rpma_batch_new(w.h.conn, MOST, &w.h.batch));
}

// Operations with the contexts from first on; the device gets them in that order.
static void add(unsigned first, unsigned count) {
    for (unsigned i = first; i < first + count; i++)
        MUST(rpma_batch_write(w.h.batch, w.h.remote, 0, w.h.mr, i, i + 1,
                              RPMA_F_COMPLETION_ALWAYS, (void *)(uintptr_t)i));
}

// The device took those contexts, from one record on, and nothing after them.
static void expect_taken(unsigned from, unsigned first, unsigned count) {
    assert_int_equal(fake_posted_count(), from + count);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(fake_posted(from + i)->wr_id, first + i);
        assert_int_equal(fake_posted(from + i)->sge.addr, (uintptr_t)w.memory + first + i);
        assert_int_equal(fake_posted(from + i)->sge.length, first + i + 1);
    }
}

static void post_all(unsigned first, unsigned count) {
    uint32_t posted = UINT32_MAX;
    MUST(rpma_batch_post(w.h.batch, &posted));
    EXPECT_CALLS(count ? "ibv_post_send" : "");
    assert_int_equal(posted, count);
    expect_taken(0, first, count);
}

// The nth of the pending operations is refused.
static void refuse(unsigned nth, int error) {
    if (nth == 1)
        fake_fail("ibv_post_send", 1, error);
    else
        fake_fail("send request", nth - 1, error);
}

// It is, and the device took the ones before it; number and all are those in the whole batch.
static void expect_refusal(unsigned nth, unsigned number, unsigned all) {
    char before[64];
    uint32_t posted = UINT32_MAX;
    snprintf(before, sizeof(before), "operation %u of %u: ", number, all);
    refuse(nth, ENOMEM);
    EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_PROVIDER, "ibv_post_send() failed",
                 "ibv_post_send()", ENOMEM, "ibv_post_send", .before = before);
    assert_non_null(strstr(logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message, "queue is full"));
    assert_int_equal(posted, nth - 1);
    expect_taken(0, number - nth, nth - 1);
    fake_faults_off();
}

// ---- posting -------------------------------------------------------------------------------

static void operations_reach_the_device_at_once(void **state) {
    (void)state;
    new_batch();
    for (unsigned count = 1; count <= MOST; count++) {
        MUST(rpma_batch_reset(w.h.batch));
        add(0, count);
        EXPECT_CALLS("");
        assert_int_equal(fake_posted_count(), 0);
        post_all(0, count);
        assert_int_equal(fake_last("ibv_post_send")->requests, count);
    }
    world_drop(&w);
}

static void nothing_is_posted_of_an_empty_batch(void **state) {
    (void)state;
    new_batch();
    post_all(0, 0);
    MUST(rpma_batch_post(w.h.batch, NULL));
    EXPECT_CALLS("");
    add(0, 2);
    MUST(rpma_batch_reset(w.h.batch));
    EXPECT_CALLS("");
    post_all(0, 0);
    world_drop(&w);
}

// What an operation points to is the region, not its bytes; the 8 of an atomic write are
// copied.
static void batch_is_posted_a_thousand_times(void **state) {
    (void)state;
    char bytes[8] = "8 bytes";
    new_batch();
    add(0, OPS);
    MUST(rpma_batch_atomic_write(w.h.batch, w.h.remote, 8, bytes, RPMA_F_COMPLETION_ALWAYS,
                                 (void *)(uintptr_t)OPS));
    for (int i = 0; i < 1000; i++) {
        uint32_t posted = 0;
        memset(w.memory, i, sizeof(w.memory));
        memset(bytes, i, sizeof(bytes));
        MUST(rpma_batch_post(w.h.batch, &posted));
        EXPECT_CALLS("ibv_post_send");
        assert_int_equal(posted, OPS + 1);
        assert_int_equal(fake_posted_count(), OPS + 1);
        for (unsigned k = 0; k < OPS; k++)
            assert_int_equal(fake_posted(k)->sge.addr, (uintptr_t)w.memory + k);
        assert_int_equal(fake_posted(OPS)->wr_id, OPS);
        assert_memory_equal(fake_posted(OPS)->inlined, "8 bytes", 8);
    }
    world_drop(&w);
}

static void operations_are_added_behind_posted_ones(void **state) {
    (void)state;
    new_batch();
    for (unsigned count = 1; count <= MOST; count++) {
        add(count - 1, 1);
        post_all(0, count);
    }
    EXPECT_ERROR(rpma_batch_send(w.h.batch, NULL, 0, 0, 1, NULL), RPMA_E_INVAL,
                 "the batch is full", "the batch is full", .logs = "full");
    post_all(0, MOST);
    MUST(rpma_batch_reset(w.h.batch));
    add(3, MOST);
    post_all(3, MOST);
    world_drop(&w);
}

// ---- refusals ------------------------------------------------------------------------------

// Twice in each list, at every two places; providers that name no request when all goes well
// are like the others.
static void posting_goes_on_with_what_was_refused(void **state) {
    (void)state;
    for (int keeps_bad_wr = 0; keeps_bad_wr < 2; keeps_bad_wr++)
        for (unsigned first = 1; first <= OPS; first++)
            for (unsigned second = first; second <= OPS; second++) {
                fake_reset();
                fake_device()->keeps_bad_wr = keeps_bad_wr;
                new_batch();
                add(0, OPS);
                expect_refusal(first, first, OPS);
                expect_refusal(second - first + 1, second, OPS);
                post_all(second - 1, OPS - second + 1);
                post_all(0, OPS); // the whole list again
                expect_refusal(first, first, OPS);
                post_all(first - 1, OPS - first + 1);
                world_drop(&w);
            }
}

static void operations_are_added_behind_refused_ones(void **state) {
    (void)state;
    for (unsigned nth = 1; nth <= OPS; nth++) {
        fake_reset();
        new_batch();
        add(0, OPS);
        expect_refusal(nth, nth, OPS);
        add(OPS, 1);
        expect_refusal(1, nth, OPS + 1);
        add(OPS + 1, 1);
        post_all(nth - 1, MOST - nth + 1);
        post_all(0, MOST);
        world_drop(&w);
    }
}

static void reset_forgets_refused_operations(void **state) {
    (void)state;
    for (unsigned nth = 1; nth <= OPS; nth++) {
        fake_reset();
        new_batch();
        add(0, OPS);
        expect_refusal(nth, nth, OPS);
        MUST(rpma_batch_reset(w.h.batch));
        EXPECT_CALLS("");
        post_all(0, 0);
        add(10, MOST);
        post_all(10, MOST);
        world_drop(&w);
    }
}

static void nobody_has_to_ask_how_many_were_posted(void **state) {
    (void)state;
    new_batch();
    add(0, OPS);
    refuse(3, ENOMEM);
    EXPECT_ERROR(rpma_batch_post(w.h.batch, NULL), RPMA_E_PROVIDER, "ibv_post_send() failed",
                 "ibv_post_send()", ENOMEM, "ibv_post_send", .before = "operation 3 of 6: ");
    expect_taken(0, 0, 2);
    fake_faults_off();
    MUST(rpma_batch_post(w.h.batch, NULL));
    expect_taken(0, 2, OPS - 2);
    world_drop(&w);
}

// Error numbers as in rma.c.
static void reasons_are_told_as_far_as_the_provider_gives_them(void **state) {
    (void)state;
    static const struct {
        int returned, error;
    } cases[] = {{EINVAL, EINVAL}, {-ENOMEM, ENOMEM}, {-1, 0}};
    new_batch();
    add(0, OPS);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        uint32_t posted = 7;
        refuse(1, cases[i].returned);
        EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_PROVIDER,
                     "ibv_post_send() failed", "ibv_post_send()", cases[i].error,
                     "ibv_post_send", .logs = "gives no reason",
                     .before = "operation 1 of 6: ");
        assert_int_equal(posted, 0);
        fake_faults_off();
    }
    post_all(0, OPS);
    world_drop(&w);
}

// Everything is in the queue, though the device may not know: posted again, it would be there
// twice.
static void failed_doorbell_leaves_nothing_to_post(void **state) {
    (void)state;
    for (unsigned count = 1; count <= OPS; count++) {
        char before[64];
        uint32_t posted = 0;
        fake_reset();
        new_batch();
        add(0, count);
        snprintf(before, sizeof(before), "all %u operations are queued, but: ", count);
        fake_fail("doorbell", 1, EIO);
        EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_PROVIDER,
                     "ibv_post_send() failed", "ibv_post_send()", EIO, "ibv_post_send",
                     .before = before);
        assert_int_equal(posted, count);
        expect_taken(0, 0, count);
        post_all(0, count); // the list from its beginning
        world_drop(&w);
    }
}

static void doorbell_fails_behind_a_refusal(void **state) {
    (void)state;
    uint32_t posted = 0;
    new_batch();
    add(0, OPS);
    refuse(4, ENOMEM);
    fake_fail("doorbell", 1, EIO); // whose error comes first
    EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_PROVIDER, "ibv_post_send() failed",
                 "ibv_post_send()", EIO, "ibv_post_send", .before = "operation 4 of 6: ");
    assert_int_equal(posted, 3);
    post_all(3, OPS - 3);
    world_drop(&w);
}

// rdma-core 56, providers/siw/siw.c, siw_post_send(): the 0 of its doorbell stands for the
// error of the refusal, so a list that is longer than the queue seems to be taken.
static void refusal_is_seen_behind_success(void **state) {
    (void)state;
    for (unsigned nth = 2; nth <= OPS; nth++) {
        char before[64];
        uint32_t posted = 0;
        fake_reset();
        fake_device()->hides_refusals = true;
        new_batch();
        add(0, OPS);
        snprintf(before, sizeof(before), "operation %u of %u: ", nth, OPS);
        refuse(nth, ENOMEM);
        EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_PROVIDER,
                     "ibv_post_send() failed", "ibv_post_send()", .calls = "ibv_post_send",
                     .logs = "gives no reason");
        assert_non_null(strstr(logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message, before));
        assert_int_equal(posted, nth - 1);
        expect_taken(0, 0, nth - 1);
        fake_faults_off();
        post_all(nth - 1, OPS - nth + 1);
        world_drop(&w);
    }
}

// ---- life ----------------------------------------------------------------------------------

static void batch_needs_memory(void **state) {
    (void)state;
    new_batch();
    MUST(rpma_batch_delete(&w.h.batch));
    EXPECT_CALLS("");
    for (unsigned i = 0; i < 2; i++) { // the operations, and what keeps them
        fake_fail("malloc", 1 + i, ENOMEM);
        WATCH(w.h);
        EXPECT_ERROR(rpma_batch_new(w.h.conn, MOST, &w.h.batch), RPMA_E_NOMEM,
                     "allocation failed", "out of memory");
        assert_int_equal(fake_faults_fired(), i + 1);
        fake_faults_off();
    }
    world_drop(&w);
}

// All memory is taken at the beginning, and all is given back.
static void memory_is_taken_once(void **state) {
    (void)state;
    new_batch();
    const size_t held = fake_bytes_held();
    fake_fail_from("malloc", 1, ENOMEM);
    add(0, MOST);
    post_all(0, MOST);
    assert_int_equal(fake_bytes_held(), held);
    fake_faults_off();
    MUST(rpma_batch_delete(&w.h.batch));
    assert_true(fake_bytes_held() < held);
    world_drop(&w);
}

// Between posts, while operations are on their way, and when the connection is gone.
static void batch_is_deleted_at_any_time(void **state) {
    (void)state;
    for (int stage = 0; stage < 4; stage++) {
        fake_reset();
        new_batch();
        if (stage > 0)
            add(0, OPS);
        if (stage > 1)
            post_all(0, OPS);
        if (stage == 3) {
            MUST(rpma_conn_delete(&w.h.conn));
        }
        MUST(rpma_batch_delete(&w.h.batch));
        EXPECT_CALLS("");
        assert_null(w.h.batch);
        world_drop(&w);
    }
}

static void batches_of_a_connection_are_independent(void **state) {
    (void)state;
    struct rpma_batch *other = NULL;
    new_batch();
    MUST(rpma_batch_new(w.h.conn, 1, &other));
    add(0, OPS);
    MUST(rpma_batch_send(other, NULL, 0, 0, 1, (void *)77));
    expect_refusal(3, 3, OPS);
    MUST(rpma_batch_post(other, NULL));
    assert_int_equal(fake_posted_count(), 1);
    assert_int_equal(fake_posted(0)->wr_id, 77);
    MUST(rpma_batch_delete(&other));
    post_all(2, OPS - 2);
    world_drop(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(operations_reach_the_device_at_once),
        TEST(nothing_is_posted_of_an_empty_batch),
        TEST(batch_is_posted_a_thousand_times),
        TEST(operations_are_added_behind_posted_ones),
        TEST(posting_goes_on_with_what_was_refused),
        TEST(operations_are_added_behind_refused_ones),
        TEST(reset_forgets_refused_operations),
        TEST(nobody_has_to_ask_how_many_were_posted),
        TEST(reasons_are_told_as_far_as_the_provider_gives_them),
        TEST(failed_doorbell_leaves_nothing_to_post),
        TEST(doorbell_fails_behind_a_refusal),
        TEST(refusal_is_seen_behind_success),
        TEST(batch_needs_memory),
        TEST(memory_is_taken_once),
        TEST(batch_is_deleted_at_any_time),
        TEST(batches_of_a_connection_are_independent),
    };
    return UNIT_RUN("batch", tests);
}
