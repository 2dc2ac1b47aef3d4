// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// readme.c -- make_persistent() of the README returns 0 after the flush has completed, never
// before

#include "fixture.h"
#include "interrupt.h"

int make_persistent(struct rpma_conn *conn, struct rpma_mr_remote *dst, size_t len);

#include "readme_example.h"

static const struct shape own = {.name = "own channels"};
static const struct ibv_wc earlier = {.wr_id = 42, .status = IBV_WC_SUCCESS};

static struct ibv_cq *queue;

static void new_conn(void) {
    fixture_conn(&w, &own);
    queue = fixture_qp(&w)->send_cq;
}

static int persist(void) {
    return make_persistent(w.h.conn, w.h.remote, FIXTURE_REMOTE_SIZE);
}

// Completes the last posted operation.
static void complete_last(enum ibv_wc_status status) {
    const struct ibv_wc wc = {.wr_id = fake_last("ibv_post_send")->send.wr_id,
                              .status = status};
    fake_complete(queue, &wc);
}

static void complete_the_flush(void) {
    complete_last(IBV_WC_SUCCESS);
}

static void fail_the_flush(void) {
    complete_last(IBV_WC_REM_ACCESS_ERR);
}

// An earlier completion is in the queue, or was polled without a wait, so that its event is
// stale. The flush completes in a wait, after a signal has interrupted the wait. If the call
// returned earlier, the completion would remain in the queue.
TEST_THAT(call_returns_after_the_flush) {
    for (int is_stale = 0; is_stale < 2; is_stale++) {
        struct ibv_wc wc;
        new_conn();
        fake_complete(queue, &earlier);
        if (is_stale)
            MUST(rpma_cq_get_wc(fixture_cq(&w), 1, &wc, NULL));
        interrupt_wait(complete_the_flush);
        assert_int_equal(persist(), 0);
        interrupt_done();
        assert_int_equal(rpma_cq_get_wc(fixture_cq(&w), 1, &wc, NULL), RPMA_E_NO_COMPLETION);
    }
}

TEST_THAT(failed_flush_is_returned) {
    new_conn();
    interrupt_wait(fail_the_flush);
    assert_int_equal(persist(), RPMA_E_UNKNOWN);
    interrupt_done();
}

TEST_THAT(failed_call_is_returned) {
    static const char *const calls[] = {"ibv_post_send", "ibv_poll_cq", "ibv_get_cq_event"};
    for (size_t i = 0; i < LENGTH(calls); i++) {
        new_conn();
        fake_fail(calls[i], 1, EIO);
        assert_int_equal(persist(), RPMA_E_PROVIDER);
    }
}
