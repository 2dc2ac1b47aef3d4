// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// readme.c -- the three calls of the README write, flush, and wait for the flush

#include "fixture.h"
#include "interrupt.h"

static void call_the_library(struct rpma_conn *conn, struct rpma_mr_remote *dst,
                             struct rpma_mr_local *src, size_t len, struct rpma_cq *cq) {
#include "readme_example.h"
}

static struct ibv_cq *queue;

static void complete_the_flush(void) {
    const struct ibv_wc wc = {.wr_id = fake_last("ibv_post_send")->send.wr_id,
                              .status = IBV_WC_SUCCESS};
    fake_complete(queue, &wc);
}

TEST_THAT(example_of_the_readme_completes) {
    static const struct shape own = {.name = "own channels"};
    struct ibv_wc wc;
    fixture_conn(&w, &own);
    queue = fixture_qp(&w)->send_cq;
    interrupt_wait(complete_the_flush);
    call_the_library(w.h.conn, w.h.remote, w.h.mr, FIXTURE_REMOTE_SIZE, fixture_cq(&w));
    interrupt_done();
    assert_int_equal(fake_count("ibv_post_send"), 2);
    assert_int_equal(fake_last("ibv_post_send")->send.opcode, IBV_WR_RDMA_READ);
    assert_int_equal(rpma_cq_get_wc(fixture_cq(&w), 1, &wc, NULL), 0);
}
