// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq.c -- completion queues of a connection and of the program: waiting, polling, shared
// channels; shared receive queues

#include "fixture.h"

#include <stdio.h>

static const struct shape own = {.name = "own channels", .rcq_size = 4};
static const struct shape shared = {.name = "shared channel", .shared = true, .rcq_size = 4};
static const struct ibv_wc done = {.wr_id = 42, .status = IBV_WC_SUCCESS};

static struct rpma_cq *cq;
static struct ibv_cq *queue, *receive_queue;

static void new_conn(const struct shape *shape) {
    fixture_conn(&w, shape);
    cq = fixture_cq(&w);
    queue = fixture_qp(&w)->send_cq;
    receive_queue = fixture_qp(&w)->recv_cq;
}

// ---- rpma_cq_take_event(), rpma_cq_arm() ---------------------------------------------------

TEST_THAT(take_event_and_arm_together_are_equal_to_wait) {
    new_conn(&own);
    fixture_nonblocking(fixture_cq_fd(cq));
    fake_complete(queue, &done); // a new queue is armed for any completion
    MUST(rpma_cq_take_event(cq));
    assert_false(fake_armed(queue));
    MUST(rpma_cq_arm(cq, true));
    assert_false(fake_armed(queue)); // armed for solicited ones only
    fake_complete(queue, &done);
    EXPECT_ERROR(rpma_cq_take_event(cq), RPMA_E_NO_COMPLETION, "errno in {EAGAIN, EINTR}",
                 "ibv_get_cq_event()", EAGAIN, "ibv_get_cq_event");
    fake_complete_solicited(queue, &done);
    MUST(rpma_cq_take_event(cq));
    MUST(rpma_cq_arm(cq, false));
    assert_true(fake_armed(queue));
}

// ---- rpma_cq_set_moderation() --------------------------------------------------------------

// ../properties/failing.c has the failures of the device.
TEST_THAT(moderation_is_set_in_the_device) {
    new_conn(&shared);
    MUST(rpma_cq_set_moderation(cq, UINT16_MAX, 4095));
    EXPECT_CALLS("ibv_modify_cq");
    const struct ibv_modify_cq_attr *attr = &fake_last("ibv_modify_cq")->modify_cq;
    assert_int_equal(attr->attr_mask, IBV_CQ_ATTR_MODERATE);
    assert_int_equal(attr->moderate.cq_count, UINT16_MAX);
    assert_int_equal(attr->moderate.cq_period, 4095);
}

// ---- acknowledgements of events ------------------------------------------------------------

// Acknowledging locks a mutex, so it is done for many events at once, and before the deletion.
TEST_THAT(events_are_acknowledged_in_batches) {
    enum { BATCH = 64 };
    new_conn(&own);
    for (unsigned i = 1; i <= 3 * BATCH + 1; i++) {
        fake_notify(queue);
        MUST(i % 2 ? rpma_cq_wait(cq) : rpma_cq_take_event(cq));
        assert_int_equal(fake_unacked(queue), i % BATCH);
    }
    fixture_delete(&w); // deleting a queue with unacknowledged events is a misuse
}

static int wait_of_conn(struct rpma_cq *of_conn) {
    (void)of_conn;
    return rpma_conn_completion_wait(w.h.conn);
}

// ../properties/failure_lines.tsv has the lines.
TEST_THAT(event_of_foreign_queue_is_not_counted) {
    static int (*const takers[])(struct rpma_cq *) = {rpma_cq_wait, rpma_cq_take_event,
                                                      wait_of_conn};
    for (size_t i = 0; i < LENGTH(takers); i++) {
        new_conn(&own);
        const struct ibv_cq *foreign = fake_foreign_event(fixture_cq_fd(cq));
        fake_notify(queue);
        assert_int_equal(takers[i](cq), RPMA_E_UNKNOWN);
        assert_int_equal(fake_unacked(foreign), 0);
        assert_int_equal(fake_unacked(queue), 0);
        MUST(takers[i](cq));
        assert_int_equal(fake_unacked(queue), 1);
        fixture_delete(&w); // a wrong number of acknowledgements is a misuse
    }
}

// ---- rpma_conn_wait(), rpma_conn_get_compl_fd() --------------------------------------------

TEST_THAT(wait_returns_the_queue_with_the_event) {
    struct rpma_cq *fired = NULL;
    bool is_rcq = true;
    new_conn(&shared);
    fake_complete(queue, &done);
    MUST(rpma_conn_wait(w.h.conn, 0, &fired, &is_rcq));
    assert_ptr_equal(fired, cq);
    assert_false(is_rcq);
    assert_true(fake_armed(queue));
    fake_complete(receive_queue, &done);
    MUST(rpma_conn_wait(w.h.conn, -1, &fired, &is_rcq)); // the flags are ignored
    assert_ptr_equal(fired, fixture_rcq(&w));
    assert_true(is_rcq);
    assert_true(fake_armed(receive_queue));
    fake_complete(queue, &done);
    MUST(rpma_conn_wait(w.h.conn, 0, &fired, NULL));
    assert_ptr_equal(fired, cq);
}

TEST_THAT(shared_channel_has_one_descriptor) {
    int fd = -7;
    new_conn(&shared);
    MUST(rpma_conn_get_compl_fd(w.h.conn, &fd));
    assert_int_equal(fd, fixture_cq_fd(cq));
    assert_int_equal(fd, fixture_cq_fd(fixture_rcq(&w)));
    assert_int_equal(fd, queue->channel->fd);
}

// ---- rpma_cq_get_wc() ----------------------------------------------------------------------

TEST_THAT(completions_are_returned_unchanged) {
    struct ibv_wc sent[5], wc[4];
    int got = -1;
    new_conn(&own);
    for (int i = 0; i < 5; i++) {
        memset(&sent[i], 0x10 + i, sizeof(sent[i]));
        fake_complete(queue, &sent[i]);
    }
    MUST(rpma_cq_get_wc(cq, 1, wc, NULL));
    EXPECT_CALLS("ibv_poll_cq");
    assert_memory_equal(wc, sent, sizeof(sent[0]));
    MUST(rpma_cq_get_wc(cq, 3, wc, &got));
    assert_int_equal(fake_last("ibv_poll_cq")->number, 3);
    assert_int_equal(got, 3);
    assert_memory_equal(wc, sent + 1, 3 * sizeof(sent[0]));
    MUST(rpma_cq_get_wc(cq, 4, wc, &got));
    assert_int_equal(got, 1);
}

// ---- rpma_cq_new(), rpma_cq_delete() -------------------------------------------------------

static int new_cq(void) {
    return rpma_cq_new(w.h.peer, w.h.cq_cfg, &w.h.shared_cq);
}

// The default configuration. The library must copy a configuration during the call.
TEST_THAT(new_creates_an_armed_cq_with_a_channel) {
    struct ibv_wc got = {0};
    fixture_peer(&w);
    MUST(new_cq());
    assert_int_equal(fake_last("ibv_create_cq")->create_cq.cqe, 100);
    assert_int_equal(fake_last("ibv_create_cq")->create_cq.comp_vector, 0);
    queue = fake_cq_on(fixture_cq_fd(w.h.shared_cq), 0);
    assert_true(fake_armed(queue));
    fake_complete(queue, &done);
    MUST(rpma_cq_wait(w.h.shared_cq));
    assert_true(fake_armed(queue));
    MUST(rpma_cq_get_wc(w.h.shared_cq, 1, &got, NULL));
    assert_int_equal(got.wr_id, done.wr_id);
    MUST(rpma_cq_delete(&w.h.shared_cq)); // a misuse unless the event is acknowledged
    EXPECT_CALLS("ibv_ack_cq_events ibv_destroy_cq ibv_destroy_comp_channel");
}

// ../properties/failure_lines.tsv has the rejected values.
TEST_THAT(new_passes_the_configured_sizes) {
    static const struct {
        int vectors;
        uint32_t size, vector;
    } cases[] = {{4, 200, 0}, {1, 4, 0}, {4, 4, 1}, {4, 4, 3}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        fixture_reset();
        fake_profile()->attr.max_cqe = 200;
        fake_profile()->vectors = cases[i].vectors;
        fixture_peer(&w);
        MUST(rpma_cq_cfg_new(&w.h.cq_cfg));
        MUST(rpma_cq_cfg_set_size(w.h.cq_cfg, cases[i].size));
        MUST(rpma_cq_cfg_set_comp_vector(w.h.cq_cfg, cases[i].vector));
        MUST(new_cq());
        const struct fake_call *call = fake_last("ibv_create_cq");
        assert_int_equal(call->create_cq.comp_vector, cases[i].vector);
        assert_int_equal(call->create_cq.cqe, cases[i].size);
    }
}

static void expect_in_use(struct rpma_cq **cq, const char *users) {
    char logs[64];
    snprintf(logs, sizeof(logs), "before its connections (%s)", users);
    WATCH(w.h);
    EXPECT_ERROR(rpma_cq_delete(cq), RPMA_E_PROVIDER, "the CQ stays",
                 "or a connection still uses it", .logs = logs, .own_error = EBUSY);
}

// The provider is not called, because it may unmap the queue before it fails.
TEST_THAT(delete_is_refused_under_requests_and_connections) {
    const struct shape shape = {.shared_cq = 8, .shared_rcq = 8};
    struct rpma_conn_req *second = NULL;
    fixture_peer(&w);
    fixture_cfg(&w, &shape);
    fake_fail("rdma_create_qp_ex", 1, EIO); // a failed request does not use the queue
    EXPECT_ERROR(rpma_conn_req_new(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, w.h.cfg, &w.h.req),
                 RPMA_E_PROVIDER, "every address was tried", "rdma_create_qp_ex()", EIO,
                 .any_calls = true);
    fixture_make_req(&w, &shape);
    MUST(rpma_conn_req_new(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, w.h.cfg, &second));
    expect_in_use(&w.h.shared_cq, "2");
    fixture_connect(&w, &shape);
    expect_in_use(&w.h.shared_cq, "2");
    expect_in_use(&w.h.shared_rcq, "2");
    MUST(rpma_conn_req_delete(&second));
    expect_in_use(&w.h.shared_rcq, "1");
    MUST(rpma_conn_delete(&w.h.conn));
    EXPECT_CALLS("rdma_destroy_qp rdma_destroy_id rdma_destroy_event_channel");
    MUST(rpma_cq_delete(&w.h.shared_cq));
    MUST(rpma_cq_delete(&w.h.shared_rcq));
}

// ---- shared receive queues -----------------------------------------------------------------

TEST_THAT(new_creates_a_shared_queue_and_its_cq) {
    static const struct {
        uint32_t rq, rcq; // 0, 0: NULL as configuration
        uint32_t cqe;     // 0: no CQ
    } cases[] = {{0, 0, 100}, {7, 0, 0}, {7, INT32_MAX, INT32_MAX}};
    const struct ibv_wc wc = {.wr_id = 42};
    fixture_peer(&w);
    MUST(rpma_srq_cfg_new(&w.h.srq_cfg));
    fake_profile()->attr.max_cqe = INT32_MAX;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rpma_cq *rcq = (struct rpma_cq *)&w;
        struct ibv_wc got = {0};
        MUST(rpma_srq_cfg_set_rq_size(w.h.srq_cfg, cases[i].rq));
        MUST(rpma_srq_cfg_set_rcq_size(w.h.srq_cfg, cases[i].rcq));
        MUST(rpma_srq_new(w.h.peer, cases[i].rq ? w.h.srq_cfg : NULL, &w.h.srq));
        const struct fake_call *srq = fake_last("ibv_create_srq");
        assert_int_equal(srq->srq.attr.max_wr, cases[i].rq ? cases[i].rq : 100);
        assert_int_equal(srq->srq.attr.max_sge, 1);
        assert_int_equal(srq->srq.attr.srq_limit, 0);
        assert_int_equal(fake_count("ibv_create_cq"), cases[i].cqe != 0);
        if (cases[i].cqe)
            assert_int_equal(fake_last("ibv_create_cq")->create_cq.cqe, cases[i].cqe);
        MUST(rpma_srq_get_rcq(w.h.srq, &rcq));
        assert_int_equal(rcq != NULL, cases[i].cqe != 0);
        if (rcq) {
            assert_true(fake_armed(fake_cq_on(fixture_cq_fd(rcq), 0)));
            fake_complete(fake_cq_on(fixture_cq_fd(rcq), 0), &wc);
            MUST(rpma_cq_wait(rcq));
            MUST(rpma_cq_get_wc(rcq, 1, &got, NULL));
            assert_int_equal(got.wr_id, 42);
        }
        MUST(rpma_srq_delete(&w.h.srq)); // a misuse unless the event is acknowledged
    }
}

TEST_THAT(srq_limit_is_set_in_the_device) {
    fixture_peer(&w);
    MUST(rpma_srq_new(w.h.peer, NULL, &w.h.srq));
    static const uint32_t limits[] = {1, 0, 127}; // 127 for a requested size of 100
    for (size_t i = 0; i < LENGTH(limits); i++) {
        MUST(rpma_srq_set_limit(w.h.srq, limits[i]));
        EXPECT_CALLS("ibv_modify_srq");
        assert_int_equal(fake_srq_limit(fake_srq()), limits[i]);
    }
}
