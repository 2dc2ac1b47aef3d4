// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch_refused.c -- batches of which the device takes only a part: what is reported, and where
// posting goes on

#include "batches.h"

#include <stdio.h>

// Makes the device refuse the nth pending operation.
static void refuse(unsigned nth, int error) {
    if (nth == 1)
        fake_fail("ibv_post_send", 1, error);
    else
        fake_fail("send request", nth - 1, error);
}

// Expects that the queue is full at the nth pending operation, after the device took those
// before it; number is the position of that operation in the whole batch, from 1.
static void expect_refusal(unsigned nth, unsigned number) {
    char before[64];
    uint32_t posted = UINT32_MAX;
    snprintf(before, sizeof(before), "batch[%u]: ibv_post_send(", number - 1);
    refuse(nth, number % 2 ? ENOMEM : ENOSPC);
    EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_AGAIN, "the send queue is full",
                 "the send queue is full", .calls = "ibv_post_send",
                 .logs = "; the send queue is full, it holds ", .before = before);
    assert_int_equal(posted, nth - 1);
    batch_expect_taken(&w, 0, number - nth, nth - 1);
    fake_faults_off();
}

// A new batch of OPS operations, of which the nth has been refused.
static void refused_once(unsigned nth) {
    world_anew();
    batch_begin(&w);
    batch_add(&w, 0, OPS);
    expect_refusal(nth, nth);
}

// ---- what is left ----------------------------------------------------------------------

// Each list is refused twice, at every pair of places, also by a provider that leaves bad_wr
// alone on success.
TEST_THAT(posting_goes_on_with_what_was_refused) {
    for (int keeps_bad_wr = 0; keeps_bad_wr < 2; keeps_bad_wr++)
        for (unsigned first = 1; first <= OPS; first++)
            for (unsigned second = first; second <= OPS; second++) {
                world_anew();
                fake_device()->keeps_bad_wr = keeps_bad_wr;
                batch_begin(&w);
                batch_add(&w, 0, OPS);
                expect_refusal(first, first);
                expect_refusal(second - first + 1, second);
                batch_post_all(&w, second - 1, OPS - second + 1);
                batch_post_all(&w, 0, OPS); // the whole list again
                expect_refusal(first, first);
                batch_post_all(&w, first - 1, OPS - first + 1);
            }
}

TEST_THAT(operations_are_added_behind_refused_ones) {
    for (unsigned nth = 1; nth <= OPS; nth++) {
        refused_once(nth);
        batch_add(&w, OPS, 1);
        expect_refusal(1, nth);
        batch_add(&w, OPS + 1, 1);
        batch_post_all(&w, nth - 1, MOST - nth + 1);
        batch_post_all(&w, 0, MOST);
    }
}

TEST_THAT(reset_forgets_refused_operations) {
    for (unsigned nth = 1; nth <= OPS; nth++) {
        refused_once(nth);
        MUST(rpma_batch_reset(w.h.batch));
        EXPECT_CALLS("");
        batch_post_all(&w, 0, 0);
        batch_add(&w, 10, MOST);
        batch_post_all(&w, 10, MOST);
    }
}

TEST_THAT(message_shows_no_key_of_an_earlier_write) {
    batch_begin(&w);
    struct rpma_work message = batch_write(&w, 0);
    message.type = RPMA_WORK_SEND;
    batch_add(&w, 0, 1);
    MUST(rpma_batch_reset(w.h.batch));
    MUST(rpma_batch_add(w.h.batch, &message));
    expect_refusal(1, 1);
    assert_memory_equal(logged_line(RPMA_LOG_LEVEL_DEBUG, 1)->message, "rkey=0x0, ", 10);
}

// More operations than 16 bits count: what is put in the place of the last one and what is
// refused are found there.
TEST_THAT(long_list_is_refused_near_its_end) {
    enum { LONG = UINT16_MAX + 5 };
    uint32_t size, room;
    const struct shape shape = {.name = "plain"};
    fake_device()->max_wr = LONG;
    world_peer(&w);
    MUST(rpma_conn_cfg_new(&w.h.cfg));
    MUST(rpma_conn_cfg_set_sq_size(w.h.cfg, LONG));
    MUST(rpma_conn_cfg_set_cq_size(w.h.cfg, 1));
    world_ask(&w, &shape);
    world_connect(&w, &shape);
    MUST(rpma_batch_new(w.h.conn, LONG, &w.h.batch));
    const struct rpma_work usual = batch_write(&w, 1);
    struct rpma_work last = batch_write(&w, 2);
    for (unsigned i = 0; i < LONG; i++)
        MUST(rpma_batch_add(w.h.batch, &usual));
    MUST(rpma_batch_set(w.h.batch, LONG - 1, &last));
    MUST(rpma_batch_get_size(w.h.batch, &size, &room));
    assert_int_equal(size, LONG);
    assert_int_equal(room, 0);
    uint32_t posted = 0;
    refuse(LONG, ENOMEM);
    EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_AGAIN, "the send queue is full",
                 "the send queue is full", .calls = "ibv_post_send",
                 .before = "batch[65539]: ibv_post_send(");
    assert_int_equal(posted, LONG - 1);
    fake_faults_off();
    MUST(rpma_batch_post(w.h.batch, &posted));
    assert_int_equal(posted, 1);
    assert_int_equal(fake_last("ibv_post_send")->requests, 1);
    assert_int_equal(fake_posted(fake_posted_count() - 1)->wr_id, 2);
}

// Error numbers as in plain.c. Nobody has to ask how many were posted.
TEST_THAT(reasons_are_told_as_far_as_the_provider_gives_them) {
    static const struct {
        unsigned nth;
        int returned, error;
        const char *logs, *before;
    } cases[] = {{1, EPERM, EPERM, NULL, "batch[0]: "},
                 {1, -EINVAL, EINVAL, NULL, "batch[0]: "},
                 {1, -1, 0, "gives no reason", "batch[0]: "},
                 {3, EINVAL, EINVAL, NULL, "batch[2]: "}};
    batch_begin(&w);
    batch_add(&w, 0, OPS);
    for (size_t i = 0; i < 2 * LENGTH(cases); i++) {
        const unsigned c = (unsigned)i / 2, taken = cases[c].nth - 1;
        uint32_t posted = 7;
        batch_post_all(&w, 0, OPS);
        refuse(cases[c].nth, cases[c].returned);
        EXPECT_ERROR(rpma_batch_post(w.h.batch, i % 2 ? &posted : NULL), RPMA_E_PROVIDER,
                     "ibv_post_send() failed", "ibv_post_send()", cases[c].error,
                     "ibv_post_send", .logs = cases[c].logs, .before = cases[c].before);
        assert_int_equal(posted, i % 2 ? taken : 7);
        batch_expect_taken(&w, 0, 0, taken);
        fake_faults_off();
        batch_post_all(&w, taken, OPS - taken);
    }
}

TEST_THAT(doorbell_fails_behind_a_refusal) {
    uint32_t posted = 0;
    batch_begin(&w);
    batch_add(&w, 0, OPS);
    refuse(4, EINVAL);
    fake_fail("doorbell", 1, EIO); // its error replaces that of the refusal
    EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_PROVIDER, "ibv_post_send() failed",
                 "ibv_post_send()", EIO, "ibv_post_send", .before = "batch[3]: ");
    assert_int_equal(posted, 3);
    batch_post_all(&w, 3, OPS - 3);
}

// rdma-core 56, providers/siw/siw.c, siw_post_send(): the 0 of its doorbell replaces the error
// of the refusal, so a list that is longer than the queue seems to be taken.
TEST_THAT(refusal_is_seen_behind_success) {
    for (unsigned nth = 2; nth <= OPS; nth++) {
        char before[64];
        uint32_t posted = 0;
        world_anew();
        fake_device()->hides_refusals = true;
        batch_begin(&w);
        batch_add(&w, 0, OPS);
        snprintf(before, sizeof(before), "batch[%u]: ", nth - 1);
        for (int again = 0; again < 2; again++) {
            refuse(nth, ENOMEM);
            fake_fail("ibv_post_send", 2, ENOMEM); // now the first of its list
            EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_AGAIN,
                         "the send queue is full", "the send queue is full",
                         .calls = "ibv_post_send ibv_post_send", .before = before);
            assert_int_equal(posted, nth - 1);
            batch_expect_taken(&w, 0, 0, nth - 1);
            fake_faults_off();
            batch_post_all(&w, nth - 1, OPS - nth + 1);
        }
    }
}

TEST_THAT(batches_of_a_connection_are_independent) {
    struct rpma_batch *other = NULL;
    batch_begin(&w);
    MUST(rpma_batch_new(w.h.conn, 1, &other));
    batch_add(&w, 0, OPS);
    const struct rpma_work send = {
        .type = RPMA_WORK_SEND, .flags = 1, .op_context = (void *)77};
    MUST(rpma_batch_add(other, &send));
    expect_refusal(3, 3);
    MUST(rpma_batch_post(other, NULL));
    assert_int_equal(fake_posted_count(), 1);
    assert_int_equal(fake_posted(0)->wr_id, 77);
    MUST(rpma_batch_delete(&other));
    batch_post_all(&w, 2, OPS - 2);
}
