// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq.c -- completion queues: waiting on their own or on a shared channel, and polling

#include "interrupt.h"
#include "world.h"

static struct world w;
static const struct shape own = {.name = "own channels", .rcq_size = 4};
static const struct shape shared = {.name = "shared channel", .shared = true, .rcq_size = 4};
static const struct ibv_wc done = {.wr_id = 42, .status = IBV_WC_SUCCESS};

static struct rpma_cq *cq;
static struct ibv_cq *queue, *receive_queue;

static void new_conn(const struct shape *shape) {
    world_conn(&w, shape);
    cq = world_cq(&w);
    queue = world_qp(&w)->send_cq;
    receive_queue = world_qp(&w)->recv_cq;
}

// ---- rpma_cq_wait() and its older name -----------------------------------------------------

static int old_wait(struct rpma_cq *unused) {
    (void)unused;
    return rpma_conn_completion_wait(w.h.conn);
}

static const struct waiting {
    int (*wait)(struct rpma_cq *cq);
    const char *name;
} waits[] = {{rpma_cq_wait, "rpma_cq_wait"}, {old_wait, "rpma_conn_completion_wait"}};

static void expect_wait_error(const struct waiting *by, const struct expected_error *expected) {
    unit_begin();
    unit_expect_error(by->wait(cq), by->name, expected, __FILE__, __LINE__);
}

static void wait_arms_the_queue_again(void **state) {
    (void)state;
    for (size_t i = 0; i < LENGTH(waits); i++) {
        new_conn(&own);
        assert_true(fake_armed(queue));
        fake_complete(queue, &done);
        assert_false(fake_armed(queue));
        MUST(waits[i].wait(cq));
        assert_true(fake_armed(queue));
        assert_false(fake_last("ibv_req_notify_cq") == NULL);
        world_drop(&w);
    }
}

// Acknowledging takes a lock, so it is done for many events at once, and before the deletion.
static void events_are_acknowledged_in_batches(void **state) {
    (void)state;
    enum { AT_ONCE = 64 };
    new_conn(&own);
    for (unsigned i = 1; i <= 3 * AT_ONCE + 1; i++) {
        fake_notify(queue);
        MUST(rpma_cq_wait(cq));
        assert_int_equal(fake_unacked(queue), i % AT_ONCE);
    }
    world_drop(&w); // a queue with unacknowledged events would be a misuse
}

static void nothing_to_wait_for_is_no_failure(void **state) {
    (void)state;
    static const int errors[] = {EAGAIN, EINTR};
    for (size_t i = 0; i < LENGTH(waits); i++) {
        new_conn(&own);
        world_nonblocking(world_cq_fd(cq));
        struct expected_error expected = {RPMA_E_NO_COMPLETION, "errno in {EAGAIN, EINTR}",
                                          "ibv_get_cq_event()", EAGAIN, "ibv_get_cq_event"};
        expect_wait_error(&waits[i], &expected);
        for (size_t e = 0; e < LENGTH(errors); e++) {
            fake_fail("ibv_get_cq_event", 1, errors[e]);
            expected.error = errors[e];
            expect_wait_error(&waits[i], &expected);
            fake_faults_off();
        }
        world_drop(&w);
    }
}

static void signal_ends_a_blocking_wait(void **state) {
    (void)state;
    new_conn(&own);
    interrupt_wait(NULL);
    EXPECT_ERROR(rpma_cq_wait(cq), RPMA_E_NO_COMPLETION, "errno in {EAGAIN, EINTR}",
                 "ibv_get_cq_event()", EINTR, "ibv_get_cq_event");
    interrupt_done();
    world_drop(&w);
}

static void wait_failures_are_the_providers(void **state) {
    (void)state;
    for (size_t i = 0; i < LENGTH(waits); i++) {
        new_conn(&own);
        fake_fail("ibv_get_cq_event", 1, EIO);
        expect_wait_error(
            &waits[i], &(struct expected_error){RPMA_E_PROVIDER, "failed otherwise",
                                                "ibv_get_cq_event()", EIO, "ibv_get_cq_event"});
        fake_faults_off();
        fake_notify(queue);
        fake_fail("ibv_req_notify_cq", 1, ENXIO);
        expect_wait_error(&waits[i],
                          &(struct expected_error){RPMA_E_PROVIDER, "failed otherwise",
                                                   "ibv_req_notify_cq()", ENXIO,
                                                   "ibv_get_cq_event ibv_req_notify_cq"});
        world_drop(&w);
    }
}

static void wait_is_refused_on_a_shared_channel(void **state) {
    (void)state;
    for (size_t i = 0; i < LENGTH(waits); i++) {
        new_conn(&shared);
        fake_complete(queue, &done);
        expect_wait_error(&waits[i],
                          &(struct expected_error){RPMA_E_SHARED_CHANNEL,
                                                   "shared completion channel", "shared"});
        world_drop(&w);
    }
}

// ---- rpma_conn_wait(), rpma_conn_get_compl_fd() --------------------------------------------

static void wait_names_the_queue_that_fired(void **state) {
    (void)state;
    struct rpma_cq *fired = NULL;
    bool is_rcq = true;
    new_conn(&shared);
    fake_complete(queue, &done);
    MUST(rpma_conn_wait(w.h.conn, 0, &fired, &is_rcq));
    assert_ptr_equal(fired, cq);
    assert_false(is_rcq);
    assert_true(fake_armed(queue));
    fake_complete(receive_queue, &done);
    MUST(rpma_conn_wait(w.h.conn, -1, &fired, &is_rcq)); // the flags do not matter
    assert_ptr_equal(fired, world_rcq(&w));
    assert_true(is_rcq);
    assert_true(fake_armed(receive_queue));
    fake_complete(queue, &done);
    MUST(rpma_conn_wait(w.h.conn, 0, &fired, NULL));
    assert_ptr_equal(fired, cq);
    world_drop(&w);
}

static void expect_conn_wait_error(const struct expected_error *expected) {
    struct rpma_cq *fired = (struct rpma_cq *)&w;
    bool is_rcq = true;
    WATCH(fired);
    WATCH(is_rcq);
    unit_begin();
    unit_expect_error(rpma_conn_wait(w.h.conn, 0, &fired, &is_rcq), "rpma_conn_wait", expected,
                      __FILE__, __LINE__);
}

static void conn_wait_fails_as_documented(void **state) {
    (void)state;
    static const struct {
        const char *call;
        struct expected_error expected;
    } cases[] = {
        {"ibv_get_cq_event",
         {RPMA_E_NO_COMPLETION, "{EAGAIN, EINTR}", "ibv_get_cq_event()", EAGAIN,
          "ibv_get_cq_event"}},
        {"ibv_get_cq_event",
         {RPMA_E_NO_COMPLETION, "{EAGAIN, EINTR}", "ibv_get_cq_event()", EINTR,
          "ibv_get_cq_event"}},
        {"ibv_get_cq_event",
         {RPMA_E_PROVIDER, "failed otherwise", "ibv_get_cq_event()", EBADF,
          "ibv_get_cq_event"}},
        {"ibv_req_notify_cq",
         {RPMA_E_PROVIDER, "failed otherwise", "ibv_req_notify_cq()", EIO,
          "ibv_get_cq_event ibv_req_notify_cq"}},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        fake_reset();
        new_conn(&shared);
        fake_notify(queue);
        fake_fail(cases[i].call, 1, cases[i].expected.error);
        expect_conn_wait_error(&cases[i].expected);
        world_drop(&w);
    }
    new_conn(&shared);
    world_nonblocking(world_cq_fd(cq));
    expect_conn_wait_error(&cases[0].expected);
    world_drop(&w);
}

static void event_of_another_queue_is_acknowledged(void **state) {
    (void)state;
    for (int with_rcq = 0; with_rcq < 2; with_rcq++) {
        const struct shape shape = {.shared = true, .rcq_size = with_rcq ? 4 : 0};
        new_conn(&shape);
        struct ibv_cq *foreign = fake_foreign_event(world_cq_fd(cq));
        expect_conn_wait_error(&(struct expected_error){
            RPMA_E_UNKNOWN, "neither the CQ nor the RCQ", "ibv_get_cq_event()", .logs = "CQ",
            .calls = "ibv_get_cq_event ibv_ack_cq_events"});
        assert_int_equal(fake_unacked(foreign), 0);
        world_drop(&w);
    }
}

static void shared_channel_is_needed(void **state) {
    (void)state;
    int fd = -7;
    new_conn(&own);
    expect_conn_wait_error(&(struct expected_error){
        RPMA_E_NOT_SHARED_CHNL, "without a shared completion channel", "not shared"});
    WATCH(fd);
    EXPECT_ERROR(rpma_conn_get_compl_fd(w.h.conn, &fd), RPMA_E_NOT_SHARED_CHNL,
                 "without a shared completion channel", "not shared");
    world_drop(&w);
    new_conn(&shared);
    MUST(rpma_conn_get_compl_fd(w.h.conn, &fd));
    assert_int_equal(fd, world_cq_fd(cq));
    assert_int_equal(fd, world_cq_fd(world_rcq(&w)));
    assert_ptr_equal(fake_comp_channel_on(fd), queue->channel);
    world_drop(&w);
}

// ---- rpma_cq_get_wc() ----------------------------------------------------------------------

static void completions_come_as_they_are(void **state) {
    (void)state;
    struct ibv_wc wc[4];
    int got = -1;
    new_conn(&own);
    for (uint64_t i = 0; i < 5; i++) {
        struct ibv_wc next;
        memset(&next, (int)(0x10 + i), sizeof(next));
        fake_complete(queue, &next);
    }
    MUST(rpma_cq_get_wc(cq, 1, wc, NULL));
    EXPECT_CALLS("ibv_poll_cq");
    assert_int_equal(((unsigned char *)wc)[sizeof(wc[0]) - 1], 0x10);
    MUST(rpma_cq_get_wc(cq, 3, wc, &got));
    assert_int_equal(fake_last("ibv_poll_cq")->number, 3);
    assert_int_equal(got, 3);
    assert_int_equal(((unsigned char *)wc)[0], 0x11);
    assert_int_equal(((unsigned char *)wc)[3 * sizeof(wc[0]) - 1], 0x13);
    MUST(rpma_cq_get_wc(cq, 4, wc, &got));
    assert_int_equal(got, 1);
    world_drop(&w);
}

static void polling_fails_as_documented(void **state) {
    (void)state;
    struct ibv_wc wc[2] = {{.wr_id = 9}};
    int got = -7;
    new_conn(&own);
    WATCH(wc);
    WATCH(got);
    EXPECT_ERROR(rpma_cq_get_wc(cq, 2, wc, &got), RPMA_E_NO_COMPLETION, "CQ empty",
                 "ibv_poll_cq()", .logs = "empty", .calls = "ibv_poll_cq");
    fake_poll_returns(3);
    WATCH(wc);
    WATCH(got);
    EXPECT_ERROR(rpma_cq_get_wc(cq, 2, wc, &got), RPMA_E_UNKNOWN, "> num_entries",
                 "ibv_poll_cq()", .calls = "ibv_poll_cq",
                 .logs = "ibv_poll_cq(num_entries=2) returned 3");
    fake_fail("ibv_poll_cq", 1, EIO);
    WATCH(wc);
    WATCH(got);
    EXPECT_ERROR(rpma_cq_get_wc(cq, 2, wc, &got), RPMA_E_PROVIDER, "ibv_poll_cq() < 0",
                 "ibv_poll_cq()", .calls = "ibv_poll_cq", .logs = "gives no reason");
    world_drop(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(wait_arms_the_queue_again),
        TEST(events_are_acknowledged_in_batches),
        TEST(nothing_to_wait_for_is_no_failure),
        TEST(signal_ends_a_blocking_wait),
        TEST(wait_failures_are_the_providers),
        TEST(wait_is_refused_on_a_shared_channel),
        TEST(wait_names_the_queue_that_fired),
        TEST(conn_wait_fails_as_documented),
        TEST(event_of_another_queue_is_acknowledged),
        TEST(shared_channel_is_needed),
        TEST(completions_come_as_they_are),
        TEST(polling_fails_as_documented),
    };
    return UNIT_RUN("cq", tests);
}
