// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq_lent.c -- completion queues that the program makes and lends to its connections

#include "world.h"

#include <stdio.h>

#define MADE "ibv_create_comp_channel ibv_create_cq ibv_req_notify_cq"
#define GONE "ibv_destroy_cq ibv_destroy_comp_channel"

static struct world w;

// ---- rpma_cq_new(), rpma_cq_delete() -------------------------------------------------------

static void new_makes_an_armed_queue_with_a_channel(void **state) {
    (void)state;
    struct ibv_wc wc = {.wr_id = 42}, got = {0};
    world_peer(&w);
    MUST(rpma_cq_new(w.h.peer, 100, &w.h.lent_cq));
    EXPECT_CALLS(MADE);
    assert_int_equal(fake_last("ibv_create_cq")->create_cq.cqe, 100);
    struct ibv_cq *queue = fake_cq_on(world_cq_fd(w.h.lent_cq), 0);
    assert_true(fake_armed(queue));
    fake_complete(queue, &wc);
    MUST(rpma_cq_wait(w.h.lent_cq));
    assert_true(fake_armed(queue));
    MUST(rpma_cq_get_wc(w.h.lent_cq, 1, &got, NULL));
    assert_int_equal(got.wr_id, 42);
    assert_int_equal(fake_unacked(queue), 1);
    MUST(rpma_cq_delete(&w.h.lent_cq)); // with the event of the wait acknowledged
    EXPECT_CALLS("ibv_ack_cq_events " GONE);
    assert_null(w.h.lent_cq);
    world_drop(&w);
}

static void new_needs_a_size_that_the_device_has(void **state) {
    (void)state;
    static const struct {
        uint32_t size;
        const char *logs;
    } cases[] = {
        {0, "ibv_create_cq(cqe=0)"}, {201, "max_cqe 200"}, {UINT32_MAX, "max_cqe 200"}};
    fake_device()->max_cqe = 200;
    world_peer(&w);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        WATCH(w.h);
        EXPECT_ERROR(rpma_cq_new(w.h.peer, cases[i].size, &w.h.lent_cq), RPMA_E_PROVIDER,
                     "ibv_create_cq() or", "ibv_create_cq()", EINVAL,
                     "ibv_create_comp_channel ibv_create_cq ibv_destroy_comp_channel",
                     .logs = cases[i].logs);
    }
    MUST(rpma_cq_new(w.h.peer, 200, &w.h.lent_cq));
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
        EXPECT_ERROR(rpma_cq_new(w.h.peer, 4, &w.h.lent_cq), RPMA_E_PROVIDER,
                     "ibv_create_cq() or", cause, ENOSYS, cases[i].calls);
        world_drop(&w);
    }
}

static void new_returns_all_when_memory_is_out(void **state) {
    (void)state;
    world_peer(&w);
    fake_fail("malloc", 1, ENOMEM);
    WATCH(w.h);
    EXPECT_ERROR(rpma_cq_new(w.h.peer, 4, &w.h.lent_cq), RPMA_E_NOMEM, "allocation failed",
                 "out of memory", .calls = MADE " " GONE);
    world_drop(&w);
}

static void delete_keeps_the_queue_when_refused(void **state) {
    (void)state;
    static const struct {
        const char *call, *calls, *rest;
    } cases[] = {
        {"ibv_destroy_cq", "ibv_destroy_cq", GONE},
        {"ibv_destroy_comp_channel", GONE, "ibv_destroy_comp_channel"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char cause[64];
        fake_reset();
        world_peer(&w);
        MUST(rpma_cq_new(w.h.peer, 4, &w.h.lent_cq));
        snprintf(cause, sizeof(cause), "%s()", cases[i].call);
        fake_fail(cases[i].call, 1, EBUSY);
        WATCH(w.h);
        EXPECT_ERROR(rpma_cq_delete(&w.h.lent_cq), RPMA_E_PROVIDER, "the CQ stays", cause,
                     EBUSY, cases[i].calls);
        MUST(rpma_cq_delete(&w.h.lent_cq));
        EXPECT_CALLS(cases[i].rest);
        assert_null(w.h.lent_cq);
        world_drop(&w);
    }
}

static void expect_in_use(struct rpma_cq **lent, const char *users) {
    char logs[64];
    snprintf(logs, sizeof(logs), "while %s of its connections exist", users);
    WATCH(w.h);
    EXPECT_ERROR(rpma_cq_delete(lent), RPMA_E_PROVIDER, "the CQ stays",
                 "or a connection still uses it", .logs = logs, .own_error = EBUSY);
}

// A provider that refuses may have unmapped the queue by then: it is not asked.
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

// ---- which queue takes which completions ---------------------------------------------------

static const struct way {
    struct shape shape;
    uint32_t makes[2]; // sizes of the queues that the connection makes itself; 0: none
    const char *sends, *receives, *rcq; // "cq", "rcq": lent; "own", "own rcq", "srq", "none"
} ways[] = {
    {{.lent_cq = 8}, {0}, "cq", "cq", "none"},
    {{.lent_rcq = 8}, {10}, "own", "rcq", "rcq"},
    {{.lent_cq = 8, .lent_rcq = 8}, {0}, "cq", "rcq", "rcq"},
    {{.lent_cq = 8, .rcq_size = 5}, {5}, "cq", "own rcq", "own rcq"},
    {{.lent_rcq = 8, .rcq_size = 5}, {10}, "own", "rcq", "rcq"},
    {{.lent_cq = 8, .srq = true}, {0}, "cq", "cq", "none"},
    {{.lent_cq = 8, .srq = true, .srq_rcq_size = 5}, {0}, "cq", "srq", "none"},
    {{.lent_rcq = 8, .srq = true}, {10}, "own", "rcq", "rcq"},
    {{.lent_cq = 8, .lent_rcq = 8, .srq = true}, {0}, "cq", "rcq", "rcq"},
};

static struct rpma_cq *queue_called(const char *name) {
    struct rpma_cq *of_srq = NULL;
    if (strcmp(name, "srq") == 0)
        MUST(rpma_srq_get_rcq(w.h.srq, &of_srq));
    return strcmp(name, "cq") == 0        ? w.h.lent_cq
           : strcmp(name, "rcq") == 0     ? w.h.lent_rcq
           : strcmp(name, "own") == 0     ? world_cq(&w)
           : strcmp(name, "own rcq") == 0 ? world_rcq(&w)
                                          : of_srq;
}

static void each_completion_has_its_queue(void **state) {
    (void)state;
    for (const struct way *way = ways; way < ways + LENGTH(ways); way++)
        for (int incoming = 0; incoming < 2; incoming++) {
            struct shape shape = way->shape;
            shape.incoming = incoming;
            fake_reset();
            world_peer(&w);
            world_request(&w, &shape);
            assert_int_equal(fake_count("ibv_create_cq"), way->makes[0] != 0);
            if (way->makes[0])
                assert_int_equal(fake_last("ibv_create_cq")->create_cq.cqe, way->makes[0]);
            world_connect(&w, &shape);
            assert_ptr_equal(world_qp(&w)->send_cq,
                             fake_cq_on(world_cq_fd(queue_called(way->sends)), 0));
            assert_ptr_equal(world_qp(&w)->recv_cq,
                             fake_cq_on(world_cq_fd(queue_called(way->receives)), 0));
            assert_ptr_equal(world_cq(&w), queue_called(way->sends));
            assert_ptr_equal(world_rcq(&w), queue_called(way->rcq));
            if (strcmp(way->sends, "own") != 0)
                assert_ptr_not_equal(world_cq(&w), NULL);
            world_drop(&w);
        }
}

static void same_queue_for_both_is_the_main_one(void **state) {
    (void)state;
    const struct shape shape = {.lent_cq = 8, .rcq_size = 4};
    world_peer(&w);
    world_cfg(&w, &shape);
    MUST(rpma_conn_cfg_set_rcq(w.h.cfg, w.h.lent_cq));
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req));
    assert_int_equal(fake_count("ibv_create_cq"), 0);
    world_connect(&w, &shape);
    assert_ptr_equal(world_cq(&w), w.h.lent_cq);
    assert_null(world_rcq(&w));
    assert_ptr_equal(world_qp(&w)->recv_cq, world_qp(&w)->send_cq);
    expect_in_use(&w.h.lent_cq, "1");
    world_drop(&w);
}

static void setting_nothing_gives_each_its_own_again(void **state) {
    (void)state;
    const struct shape shape = {.lent_cq = 8, .lent_rcq = 8};
    world_peer(&w);
    world_cfg(&w, &shape);
    MUST(rpma_conn_cfg_set_cq(w.h.cfg, NULL));
    MUST(rpma_conn_cfg_set_rcq(w.h.cfg, NULL));
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req));
    assert_int_equal(fake_last("ibv_create_cq")->create_cq.cqe, 20);
    MUST(rpma_cq_delete(&w.h.lent_cq));
    MUST(rpma_cq_delete(&w.h.lent_rcq));
    world_drop(&w);
}

// ---- two connections on one queue ----------------------------------------------------------

static struct ibv_wc completion(const struct ibv_qp *qp, uint64_t id) {
    return (struct ibv_wc){.wr_id = id, .status = IBV_WC_SUCCESS, .qp_num = qp->qp_num};
}

static void connections_are_told_apart_by_their_numbers(void **state) {
    (void)state;
    const struct shape shape = {.lent_cq = 64};
    struct ibv_wc wc[8];
    uint32_t number[2];
    int got = 0;
    world_conn(&w, &shape);
    struct rpma_conn *first = w.h.conn;
    MUST(rpma_conn_get_qp_num(first, &number[0]));
    const struct ibv_qp *qp = world_qp(&w);
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req));
    world_connect(&w, &shape);
    MUST(rpma_conn_get_qp_num(w.h.conn, &number[1]));
    const struct ibv_qp *const qps[2] = {qp, world_qp(&w)};
    assert_ptr_equal(qps[0]->send_cq, qps[1]->recv_cq);

    for (uint64_t i = 0; i < 6; i++) {
        const struct ibv_wc done = completion(qps[i % 3 == 0], i);
        fake_complete(qps[0]->send_cq, &done);
    }
    MUST(rpma_cq_wait(w.h.lent_cq)); // one event for all
    MUST(rpma_cq_get_wc(w.h.lent_cq, 8, wc, &got));
    assert_int_equal(got, 6);
    for (uint64_t i = 0; i < 6; i++) {
        assert_int_equal(wc[i].wr_id, i);
        assert_int_equal(wc[i].qp_num, number[i % 3 == 0]);
    }

    // What the first leaves behind stays in the queue, and the second works on.
    const struct ibv_wc left = completion(qps[0], 77), next = completion(qps[1], 78);
    fake_complete(qps[1]->send_cq, &left);
    MUST(rpma_conn_delete(&first));
    EXPECT_CALLS("rdma_destroy_qp rdma_destroy_id rdma_destroy_event_channel");
    fake_complete(qps[1]->send_cq, &next);
    MUST(rpma_cq_wait(w.h.lent_cq));
    MUST(rpma_cq_get_wc(w.h.lent_cq, 8, wc, &got));
    assert_int_equal(got, 2);
    assert_int_equal(wc[0].wr_id, 77);
    assert_int_equal(wc[0].qp_num, number[0]);
    assert_int_equal(wc[1].qp_num, number[1]);
    world_drop(&w); // with both events acknowledged
}

// ---- what cannot be combined ---------------------------------------------------------------

enum lent { OF_PROGRAM, OF_CONNECTION, OF_SRQ, OF_OTHER_DEVICE };

static const struct conflict {
    struct shape shape;
    const char *condition, *cause, *logs;
    int (*set)(struct rpma_conn_cfg *cfg, struct rpma_cq *cq);
    enum lent lent;
} conflicts[] = {
    {{.shared = true},
     "channel && cfg has a CQ",
     "cfg has a shared completion channel && cfg has a CQ of rpma_cq_new()",
     "a shared completion channel and a completion queue of rpma_cq_new()",
     rpma_conn_cfg_set_cq,
     OF_PROGRAM},
    {{.shared = true, .rcq_size = 4},
     "channel && cfg has a CQ",
     "cfg has a shared completion channel && cfg has a CQ of rpma_cq_new()",
     "a shared completion channel and a completion queue of rpma_cq_new()",
     rpma_conn_cfg_set_rcq,
     OF_PROGRAM},
    {{.srq = true, .srq_rcq_size = 4},
     "new() && cfg has an SRQ",
     "cfg has a receive CQ of rpma_cq_new() && cfg has an SRQ that owns a receive CQ",
     "a receive CQ of rpma_cq_new(), and its shared receive queue owns one",
     rpma_conn_cfg_set_rcq,
     OF_PROGRAM},
    {{0},
     "a CQ of cfg was not",
     "a CQ of cfg was not made by rpma_cq_new()",
     "was not made by rpma_cq_new()",
     rpma_conn_cfg_set_cq,
     OF_CONNECTION},
    {{0},
     "a CQ of cfg was not",
     "a CQ of cfg was not made by rpma_cq_new()",
     "was not made by rpma_cq_new()",
     rpma_conn_cfg_set_rcq,
     OF_SRQ},
    {{0},
     "a CQ of cfg was not",
     "a CQ of cfg is on another device than the peer",
     "it is on fake1, the peer on fake0",
     rpma_conn_cfg_set_cq,
     OF_OTHER_DEVICE},
    {{0},
     "a CQ of cfg was not",
     "a CQ of cfg is on another device than the peer",
     "it is on fake1, the peer on fake0",
     rpma_conn_cfg_set_rcq,
     OF_OTHER_DEVICE},
};

static struct rpma_peer *other_peer;
static struct rpma_srq *other_srq;
static struct rpma_conn_req *other_req;
static struct rpma_conn *other_conn;

static struct rpma_cq *foreign_queue(enum lent lent) {
    struct rpma_cq *cq = NULL;
    if (lent == OF_CONNECTION) {
        MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &other_req));
        MUST(rpma_conn_req_connect(&other_req, NULL, &other_conn));
        MUST(rpma_conn_get_cq(other_conn, &cq));
    } else if (lent == OF_SRQ) {
        MUST(rpma_srq_new(w.h.peer, NULL, &other_srq));
        MUST(rpma_srq_get_rcq(other_srq, &cq));
    } else {
        MUST(rpma_peer_new(fake_context(lent == OF_OTHER_DEVICE), &other_peer));
        MUST(rpma_cq_new(other_peer, 8, &w.h.lent_cq));
        cq = w.h.lent_cq;
    }
    return cq;
}

static void refuse_outgoing(const struct conflict *conflict) {
    WATCH(w.h);
    EXPECT_ERROR(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req),
                 RPMA_E_INVAL, conflict->condition, conflict->cause, .logs = conflict->logs);
}

// A request that stayed would keep the descriptor readable, and its client waiting.
static void refuse_incoming(const struct conflict *conflict) {
    world_listen(&w);
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
    WATCH(w.h);
    EXPECT_ERROR(rpma_ep_next_conn_req(w.h.ep, w.h.cfg, &w.h.req), RPMA_E_INVAL,
                 conflict->condition, conflict->cause, .logs = conflict->logs,
                 .calls = "rdma_get_cm_event rdma_reject rdma_destroy_id rdma_ack_cm_event");
    assert_int_equal(fake_pending_on(world_ep_fd(&w)), 0);
}

static void conflicts_are_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < LENGTH(conflicts); i++) {
        fake_reset();
        world_peer(&w);
        world_cfg(&w, &conflicts[i].shape);
        MUST(conflicts[i].set(w.h.cfg, foreign_queue(conflicts[i].lent)));
        refuse_outgoing(&conflicts[i]);
        refuse_incoming(&conflicts[i]);
        if (w.h.lent_cq)
            MUST(rpma_cq_delete(&w.h.lent_cq)); // nobody uses it
        MUST(rpma_conn_delete(&other_conn));
        MUST(rpma_srq_delete(&other_srq));
        MUST(rpma_peer_delete(&other_peer));
        world_drop(&w);
    }
}

// The protection domain does not matter to a completion queue, the device does.
static void queue_of_another_peer_of_the_device_will_do(void **state) {
    (void)state;
    const struct shape shape = {0};
    world_peer(&w);
    world_cfg(&w, &shape);
    MUST(rpma_conn_cfg_set_cq(w.h.cfg, foreign_queue(OF_PROGRAM)));
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req));
    MUST(rpma_conn_req_delete(&w.h.req));
    MUST(rpma_cq_delete(&w.h.lent_cq));
    MUST(rpma_peer_delete(&other_peer));
    world_drop(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(new_makes_an_armed_queue_with_a_channel),
        TEST(new_needs_a_size_that_the_device_has),
        TEST(new_fails_with_each_call),
        TEST(new_returns_all_when_memory_is_out),
        TEST(delete_keeps_the_queue_when_refused),
        TEST(delete_is_refused_under_requests_and_connections),
        TEST(failed_request_leaves_the_queue_free),
        TEST(delete_refuses_queues_of_others),
        TEST(each_completion_has_its_queue),
        TEST(same_queue_for_both_is_the_main_one),
        TEST(setting_nothing_gives_each_its_own_again),
        TEST(connections_are_told_apart_by_their_numbers),
        TEST(conflicts_are_refused),
        TEST(queue_of_another_peer_of_the_device_will_do),
    };
    return UNIT_RUN("cq_lent", tests);
}
