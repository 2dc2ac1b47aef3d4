// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq_new.c -- completion queues that the program makes: rpma_cq_new(), rpma_cq_delete()

#include "world.h"

#include <limits.h>
#include <stdio.h>

#define MADE "ibv_create_comp_channel ibv_create_cq ibv_req_notify_cq"
#define GONE "ibv_destroy_cq ibv_destroy_comp_channel"

static struct world w;

// A peer, and a configuration of size 4.
static void peer_and_cfg(void) {
    world_peer(&w);
    MUST(rpma_cq_cfg_new(&w.h.cq_cfg));
    MUST(rpma_cq_cfg_set_size(w.h.cq_cfg, 4));
}

static int new_cq(void) {
    return rpma_cq_new(w.h.peer, w.h.cq_cfg, &w.h.lent_cq);
}

static void new_makes_an_armed_queue_with_a_channel(void **state) {
    (void)state;
    struct ibv_wc wc = {.wr_id = 42}, got = {0};
    world_peer(&w);
    MUST(new_cq()); // with the defaults
    EXPECT_CALLS(MADE);
    assert_int_equal(fake_last("ibv_create_cq")->create_cq.cqe, 100);
    assert_int_equal(fake_last("ibv_create_cq")->create_cq.comp_vector, 0);
    struct ibv_cq *queue = fake_cq_on(world_cq_fd(w.h.lent_cq), 0);
    assert_true(fake_armed(queue));
    fake_complete(queue, &wc);
    MUST(rpma_cq_wait(w.h.lent_cq));
    assert_true(fake_armed(queue));
    MUST(rpma_cq_get_wc(w.h.lent_cq, 1, &got, NULL));
    assert_int_equal(got.wr_id, 42);
    assert_int_equal(fake_unacked(queue), 1);
    MUST(rpma_cq_delete(&w.h.lent_cq)); // a misuse unless the event is acknowledged
    EXPECT_CALLS("ibv_ack_cq_events " GONE);
    assert_null(w.h.lent_cq);
    world_drop(&w);
}

static void new_needs_a_size_that_the_device_has(void **state) {
    (void)state;
    static const struct {
        uint32_t size;
        const char *logs;
    } cases[] = {{0, "ibv_create_cq(cqe=0, comp_vector=0)"},
                 {201, "ibv_create_cq(cqe=201, comp_vector=0)"},
                 {201, "max_cqe 200"},
                 {UINT32_MAX, "max_cqe 200"}};
    fake_device()->max_cqe = 200;
    peer_and_cfg();
    for (size_t i = 0; i < LENGTH(cases); i++) {
        MUST(rpma_cq_cfg_set_size(w.h.cq_cfg, cases[i].size));
        WATCH(w.h);
        EXPECT_ERROR(rpma_cq_new(w.h.peer, w.h.cq_cfg, &w.h.lent_cq), RPMA_E_PROVIDER,
                     "ibv_create_cq() or", "ibv_create_cq()", EINVAL,
                     "ibv_create_comp_channel ibv_create_cq ibv_destroy_comp_channel",
                     .logs = cases[i].logs);
    }
    MUST(rpma_cq_cfg_set_size(w.h.cq_cfg, 200));
    MUST(new_cq());
    assert_int_equal(fake_last("ibv_create_cq")->create_cq.cqe, 200);
    world_drop(&w);
}

static void new_needs_a_vector_that_the_device_has(void **state) {
    (void)state;
    static const struct {
        int has;
        uint32_t wanted;
        const char *logs; // NULL: success
    } cases[] = {
        {0, 1, "comp_vector of cfg is 1, fake0 has 1, from 0 on"},
        {1, 0, NULL},
        {1, 1, "comp_vector of cfg is 1, fake0 has 1, from 0 on"},
        {4, 1, NULL},
        {4, 3, NULL},
        {4, 4, "comp_vector of cfg is 4, fake0 has 4, from 0 on"},
        {4, UINT32_MAX, "comp_vector of cfg is 4294967295, fake0 has 4, from 0 on"},
        {INT_MAX, INT_MAX, "comp_vector of cfg is 2147483647, fake0 has 2147483647"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        fake_reset();
        fake_device()->vectors = cases[i].has;
        peer_and_cfg();
        MUST(rpma_cq_cfg_set_comp_vector(w.h.cq_cfg, cases[i].wanted));
        if (cases[i].logs) {
            WATCH(w.h);
            EXPECT_ERROR(rpma_cq_new(w.h.peer, w.h.cq_cfg, &w.h.lent_cq), RPMA_E_INVAL,
                         "comp_vector of cfg",
                         "comp_vector of cfg >= num_comp_vectors of the device",
                         .logs = cases[i].logs);
        } else {
            MUST(new_cq());
            EXPECT_CALLS(MADE);
            const struct fake_call *call = fake_last("ibv_create_cq");
            assert_int_equal(call->create_cq.comp_vector, cases[i].wanted);
            assert_int_equal(call->create_cq.cqe, 4);
        }
        world_drop(&w);
    }
}

// Even if the driver reports no vectors, the provider is asked for vector 0.
static void vector_0_is_asked_for_on_every_device(void **state) {
    (void)state;
    for (int vectors = -1; vectors <= 0; vectors++) {
        fake_device()->vectors = vectors;
        peer_and_cfg();
        EXPECT_ERROR(rpma_cq_new(w.h.peer, w.h.cq_cfg, &w.h.lent_cq), RPMA_E_PROVIDER,
                     "ibv_create_cq() or", "ibv_create_cq()", EINVAL,
                     "ibv_create_comp_channel ibv_create_cq ibv_destroy_comp_channel");
        world_drop(&w);
    }
}

// Later changes of the configuration do not affect the queue.
static void configuration_is_only_read_during_the_call(void **state) {
    (void)state;
    peer_and_cfg();
    MUST(rpma_cq_new(w.h.peer, w.h.cq_cfg, &w.h.lent_cq));
    MUST(rpma_cq_cfg_set_size(w.h.cq_cfg, 8));
    MUST(rpma_cq_cfg_set_comp_vector(w.h.cq_cfg, 2));
    MUST(rpma_cq_new(w.h.peer, w.h.cq_cfg, &w.h.lent_rcq));
    MUST(rpma_cq_cfg_delete(&w.h.cq_cfg));
    assert_int_equal(fake_cq_on(world_cq_fd(w.h.lent_cq), 0)->cqe, 7); // see fake_slots()
    assert_int_equal(fake_cq_on(world_cq_fd(w.h.lent_rcq), 0)->cqe, 15);
    world_drop(&w);
}

static void new_fails_with_each_call(void **state) {
    (void)state;
    static const struct {
        const char *call, *calls;
    } cases[] = {
        {"ibv_create_comp_channel", "ibv_create_comp_channel"},
        {"ibv_create_cq", "ibv_create_comp_channel ibv_create_cq ibv_destroy_comp_channel"},
        {"ibv_req_notify_cq", MADE " " GONE},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char cause[64];
        fake_reset();
        world_peer(&w);
        snprintf(cause, sizeof(cause), "%s()", cases[i].call);
        fake_fail(cases[i].call, 1, ENOSYS);
        WATCH(w.h);
        EXPECT_ERROR(rpma_cq_new(w.h.peer, w.h.cq_cfg, &w.h.lent_cq), RPMA_E_PROVIDER,
                     "ibv_create_cq() or", cause, ENOSYS, cases[i].calls);
        world_drop(&w);
    }
}

static void new_returns_all_when_memory_is_out(void **state) {
    (void)state;
    world_peer(&w);
    fake_fail("malloc", 1, ENOMEM);
    WATCH(w.h);
    EXPECT_ERROR(rpma_cq_new(w.h.peer, w.h.cq_cfg, &w.h.lent_cq), RPMA_E_NOMEM,
                 "allocation failed", "out of memory", .calls = MADE " " GONE);
    world_drop(&w);
}

static void delete_keeps_the_queue_when_refused(void **state) {
    (void)state;
    struct ibv_wc wc;
    world_peer(&w);
    MUST(new_cq());
    fake_fail("ibv_destroy_cq", 1, EBUSY);
    WATCH(w.h);
    EXPECT_ERROR(rpma_cq_delete(&w.h.lent_cq), RPMA_E_PROVIDER, "the CQ stays",
                 "ibv_destroy_cq()", EBUSY, "ibv_destroy_cq");
    assert_int_equal(rpma_cq_get_wc(w.h.lent_cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
    MUST(rpma_cq_delete(&w.h.lent_cq));
    EXPECT_CALLS(GONE);
    assert_null(w.h.lent_cq);
    world_drop(&w);
}

// If only the channel stays, no function can use the handle, so it is cleared.
static void delete_forgets_the_queue_when_the_channel_is_refused(void **state) {
    (void)state;
    world_peer(&w);
    MUST(new_cq());
    fake_fail("ibv_destroy_comp_channel", 1, EBUSY);
    EXPECT_ERROR(rpma_cq_delete(&w.h.lent_cq), RPMA_E_PROVIDER, "deleted all the same",
                 "ibv_destroy_comp_channel()", EBUSY, GONE);
    assert_null(w.h.lent_cq);
    world_drop(&w);
}

static void expect_in_use(struct rpma_cq **lent, const char *users) {
    char logs[64];
    snprintf(logs, sizeof(logs), "before its connections (%s)", users);
    WATCH(w.h);
    EXPECT_ERROR(rpma_cq_delete(lent), RPMA_E_PROVIDER, "the CQ stays",
                 "or a connection still uses it", .logs = logs, .own_error = EBUSY);
}

// The provider is not asked, because it may unmap the queue before it refuses.
static void delete_is_refused_under_requests_and_connections(void **state) {
    (void)state;
    const struct shape shape = {.lent_cq = 8, .lent_rcq = 8};
    struct rpma_conn_req *second = NULL;
    world_peer(&w);
    world_request(&w, &shape);
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &second));
    expect_in_use(&w.h.lent_cq, "2");
    world_connect(&w, &shape);
    expect_in_use(&w.h.lent_cq, "2");
    expect_in_use(&w.h.lent_rcq, "2");
    MUST(rpma_conn_req_delete(&second));
    expect_in_use(&w.h.lent_rcq, "1");
    MUST(rpma_conn_delete(&w.h.conn));
    EXPECT_CALLS("rdma_destroy_qp rdma_destroy_id rdma_destroy_event_channel");
    MUST(rpma_cq_delete(&w.h.lent_cq));
    EXPECT_CALLS(GONE);
    MUST(rpma_cq_delete(&w.h.lent_rcq));
    world_drop(&w);
}

// A request that fails does not keep the queue.
static void failed_request_leaves_the_queue_free(void **state) {
    (void)state;
    const struct shape shape = {.lent_cq = 8, .lent_rcq = 8};
    world_peer(&w);
    world_cfg(&w, &shape);
    fake_fail("rdma_create_qp_ex", 1, EIO);
    EXPECT_ERROR(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req),
                 RPMA_E_PROVIDER, "every address was tried", "rdma_create_qp_ex()", EIO,
                 .any_calls = true);
    MUST(rpma_cq_delete(&w.h.lent_cq));
    MUST(rpma_cq_delete(&w.h.lent_rcq));
    world_drop(&w);
}

static void delete_refuses_queues_of_others(void **state) {
    (void)state;
    const struct shape shape = {.rcq_size = 4};
    world_conn(&w, &shape);
    MUST(rpma_srq_new(w.h.peer, NULL, &w.h.srq));
    struct rpma_cq *others[3] = {world_cq(&w), world_rcq(&w), NULL};
    MUST(rpma_srq_get_rcq(w.h.srq, &others[2]));
    for (size_t i = 0; i < LENGTH(others); i++) {
        WATCH(others);
        EXPECT_ERROR(rpma_cq_delete(&others[i]), RPMA_E_INVAL, "the CQ was not made",
                     "the CQ was not made by rpma_cq_new()",
                     .logs = "was not made by rpma_cq_new()");
    }
    world_drop(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(new_makes_an_armed_queue_with_a_channel),
        TEST(new_needs_a_size_that_the_device_has),
        TEST(new_needs_a_vector_that_the_device_has),
        TEST(vector_0_is_asked_for_on_every_device),
        TEST(configuration_is_only_read_during_the_call),
        TEST(new_fails_with_each_call),
        TEST(new_returns_all_when_memory_is_out),
        TEST(delete_keeps_the_queue_when_refused),
        TEST(delete_forgets_the_queue_when_the_channel_is_refused),
        TEST(delete_is_refused_under_requests_and_connections),
        TEST(failed_request_leaves_the_queue_free),
        TEST(delete_refuses_queues_of_others),
    };
    return UNIT_RUN("cq_new", tests);
}
