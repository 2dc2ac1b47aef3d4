// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// connect.c -- rpma_conn_req_connect(): connecting and accepting, and what failures leave
// behind

#include "world.h"

#include <stdio.h>

#define DROP_REQUEST "rdma_destroy_qp ibv_destroy_cq ibv_destroy_comp_channel "
#define OUTGOING DROP_REQUEST "rdma_destroy_id"
#define OUTGOING_WITH_CHANNEL OUTGOING " rdma_destroy_event_channel"
#define INCOMING DROP_REQUEST "rdma_reject rdma_destroy_id rdma_destroy_event_channel"

static struct world w;
static const struct shape outgoing = {.name = "outgoing"};
static const struct shape incoming = {.name = "incoming", .incoming = true};

static void new_request(const struct shape *shape) {
    world_peer(&w);
    world_request(&w, shape);
}

// ---- success -------------------------------------------------------------------------------

static void outgoing_connects_on_its_own_channel(void **state) {
    (void)state;
    unsigned char bytes[56]; // the room in a request of InfiniBand
    new_request(&outgoing);
    memset(bytes, 0x77, sizeof(bytes));
    const struct rpma_conn_private_data pdata = {bytes, sizeof(bytes)};
    MUST(rpma_conn_req_connect(&w.h.req, &pdata, &w.h.conn));
    EXPECT_CALLS("rdma_create_event_channel rdma_migrate_id ibv_reg_mr rdma_connect");
    assert_null(w.h.req);
    assert_ptr_equal(fake_last("rdma_migrate_id")->channel,
                     fake_event_channel_on(world_event_fd(&w)));
    const struct fake_call *call = fake_last("rdma_connect");
    assert_int_equal(call->connect.param.private_data_len, sizeof(bytes));
    assert_memory_equal(call->connect.data, bytes, sizeof(bytes));
    assert_int_equal(call->connect.param.responder_resources, RDMA_MAX_RESP_RES);
    assert_int_equal(call->connect.param.initiator_depth, RDMA_MAX_INIT_DEPTH);
    assert_int_equal(call->connect.param.flow_control, 1);
    assert_int_equal(call->connect.param.retry_count, 7);
    assert_int_equal(call->connect.param.rnr_retry_count, 7);
    world_drop(&w);
}

// The ID got its own channel when the request came in, so none of its events can get lost.
static void incoming_accepts_on_the_channel_of_the_request(void **state) {
    (void)state;
    const struct rpma_conn_private_data pdata = {w.memory, 1};
    new_request(&incoming);
    w.memory[0] = 0x42;
    MUST(rpma_conn_req_connect(&w.h.req, &pdata, &w.h.conn));
    EXPECT_CALLS("ibv_reg_mr rdma_accept");
    const struct fake_call *call = fake_last("rdma_accept");
    assert_int_equal(call->connect.param.private_data_len, 1);
    assert_int_equal(call->connect.data[0], 0x42);
    assert_int_equal(call->connect.param.responder_resources, RDMA_MAX_RESP_RES);
    assert_int_equal(call->connect.param.initiator_depth, RDMA_MAX_INIT_DEPTH);
    assert_int_equal(call->connect.param.flow_control, 1);
    assert_int_equal(call->connect.param.rnr_retry_count, 7);
    assert_int_equal(fake_ids_on(world_event_fd(&w)), 1);
    assert_int_equal(fake_ids_on(world_ep_fd(&w)), 1); // only the listener
    world_drop(&w);
}

static void no_private_data_is_fine(void **state) {
    (void)state;
    new_request(&outgoing);
    MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
    assert_int_equal(fake_last("rdma_connect")->connect.param.private_data_len, 0);
    assert_null(fake_last("rdma_connect")->connect.param.private_data);
    world_drop(&w);
}

// EINVAL may mean too much private data, but only if there is any.
static void private_data_is_suspected_where_it_can_be(void **state) {
    (void)state;
    static const struct {
        uint8_t len;
        int error;
        bool suspected;
    } cases[] = {{0, EINVAL, false}, {1, EINVAL, true}, {1, EIO, false}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const struct rpma_conn_private_data pdata = {(void *)"x", cases[i].len};
        fake_reset();
        new_request(&outgoing);
        fake_fail("rdma_connect", 1, cases[i].error);
        EXPECT_ERROR(rpma_conn_req_connect(&w.h.req, cases[i].len ? &pdata : NULL, &w.h.conn),
                     RPMA_E_PROVIDER, "outgoing:", "rdma_connect()", cases[i].error,
                     .any_calls = true);
        const char *line = logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message;
        assert_int_equal(strstr(line, "carry 56 bytes") != NULL, cases[i].suspected);
        world_drop(&w);
    }
}

// 8 bytes that a flush can read into: registered once, shared by the connections of a peer.
static void flush_target_is_made_once_per_peer(void **state) {
    (void)state;
    struct rpma_conn *first = NULL;
    new_request(&outgoing);
    MUST(rpma_conn_req_connect(&w.h.req, NULL, &first));
    const struct fake_call *call = fake_last("ibv_reg_mr");
    assert_int_equal(call->reg_mr.length, 8);
    assert_int_equal(call->reg_mr.access, IBV_ACCESS_LOCAL_WRITE);
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &w.h.req));
    MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
    EXPECT_CALLS("rdma_create_event_channel rdma_migrate_id rdma_connect");
    MUST(rpma_conn_delete(&first));
    assert_int_equal(fake_count("ibv_dereg_mr"), 0);
    MUST(rpma_conn_delete(&w.h.conn));
    assert_int_equal(fake_count("ibv_dereg_mr"), 0);
    MUST(rpma_mr_dereg(&w.h.mr));
    WATCH(w.h.peer);
    fake_fail("ibv_dereg_mr", 1, EBUSY);
    EXPECT_ERROR(rpma_peer_delete(&w.h.peer), RPMA_E_PROVIDER, "the peer stays",
                 "ibv_dereg_mr()", EBUSY, "ibv_dereg_mr");
    MUST(rpma_peer_delete(&w.h.peer));
    EXPECT_CALLS("ibv_dereg_mr ibv_dealloc_pd");
    world_drop(&w);
}

static void peer_is_not_deleted_under_a_connection(void **state) {
    (void)state;
    new_request(&outgoing);
    MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
    MUST(rpma_mr_dereg(&w.h.mr));
    WATCH(w.h.peer);
    EXPECT_ERROR(rpma_peer_delete(&w.h.peer), RPMA_E_PROVIDER, "the peer stays",
                 "a connection still uses the flush target",
                 .logs = "the peer before its connections (1)", .own_error = EBUSY);
    world_drop(&w);
}

// ---- queues in all shapes ------------------------------------------------------------------

static void queues_follow_the_configuration(void **state) {
    (void)state;
    static const struct {
        struct shape shape;
        unsigned cqs, channels;
        bool own_receive_cq;
    } cases[] = {
        {{.name = "plain"}, 1, 1, false},
        {{.name = "rcq", .rcq_size = 4}, 2, 2, true},
        {{.name = "shared", .shared = true}, 1, 1, false},
        {{.name = "shared, rcq", .shared = true, .rcq_size = 4}, 2, 1, true},
        {{.name = "srq", .srq = true}, 1, 1, false},
        {{.name = "srq, rcq", .srq = true, .rcq_size = 4}, 2, 2, true},
        {{.name = "srq with rcq", .srq = true, .srq_rcq_size = 4}, 1, 1, false},
        {{.name = "srq with rcq, rcq", .srq = true, .srq_rcq_size = 4, .rcq_size = 4},
         1,
         1,
         false},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const struct shape *shape = &cases[i].shape;
        new_request(shape);
        assert_int_equal(fake_count("ibv_create_cq"), cases[i].cqs);
        assert_int_equal(fake_count("ibv_create_comp_channel"), cases[i].channels);
        if (cases[i].cqs == 2)
            assert_int_equal(fake_last("ibv_create_cq")->create_cq.cqe, 4);
        const struct ibv_qp_init_attr_ex *qp = &fake_last("rdma_create_qp_ex")->qp;
        assert_int_equal(qp->srq != NULL, shape->srq);
        struct rpma_cq *srq_rcq = NULL;
        if (shape->srq)
            (void)rpma_srq_get_rcq(w.h.srq, &srq_rcq);
        assert_int_equal(qp->recv_cq != qp->send_cq, cases[i].own_receive_cq || srq_rcq);
        if (srq_rcq)
            assert_ptr_equal(qp->recv_cq, fake_cq_on(world_cq_fd(srq_rcq), 0));
        assert_true(fake_armed(qp->send_cq) && fake_armed(qp->recv_cq));
        world_connect(&w, shape);
        assert_int_equal(world_rcq(&w) != NULL, cases[i].own_receive_cq);
        world_drop(&w);
    }
}

// ---- bad arguments -------------------------------------------------------------------------

static void nothing_is_consumed_without_a_request(void **state) {
    (void)state;
    memset(&w.h, 0, sizeof(w.h));
    WATCH(w.h.conn);
    EXPECT_ERROR(rpma_conn_req_connect(NULL, NULL, &w.h.conn), RPMA_E_INVAL, "req_ptr == NULL",
                 "req_ptr == NULL");
    WATCH(w.h.conn);
    EXPECT_ERROR(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn), RPMA_E_INVAL,
                 "*req_ptr == NULL", "*req_ptr == NULL");
}

static void bad_arguments_use_the_request_up(void **state) {
    (void)state;
    static const char *const in_pdata =
        "pdata != NULL && (pdata->ptr == NULL || pdata->len == 0)";
    const struct rpma_conn_private_data no_bytes = {&w, 0}, no_pointer = {NULL, 1};
    const struct {
        const struct rpma_conn_private_data *pdata;
        struct rpma_conn **conn_ptr;
        const char *cause, *logs;
    } cases[] = {
        {NULL, NULL, "conn_ptr == NULL", "conn_ptr == NULL"},
        {&no_bytes, &w.h.conn, in_pdata, "pdata->len is 0"},
        {&no_pointer, &w.h.conn, in_pdata, "pdata->ptr == NULL"},
    };
    const struct shape *const shapes[] = {&outgoing, &incoming};
    for (size_t s = 0; s < LENGTH(shapes); s++)
        for (size_t i = 0; i < LENGTH(cases); i++) {
            new_request(shapes[s]);
            WATCH(w.h.conn);
            EXPECT_ERROR(rpma_conn_req_connect(&w.h.req, cases[i].pdata, cases[i].conn_ptr),
                         RPMA_E_INVAL, cases[i].cause, cases[i].cause, .logs = cases[i].logs,
                         .calls = s == 0 ? OUTGOING : INCOMING);
            assert_null(w.h.req);
            world_drop(&w);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(outgoing_connects_on_its_own_channel),
        TEST(incoming_accepts_on_the_channel_of_the_request),
        TEST(no_private_data_is_fine),
        TEST(private_data_is_suspected_where_it_can_be),
        TEST(flush_target_is_made_once_per_peer),
        TEST(peer_is_not_deleted_under_a_connection),
        TEST(queues_follow_the_configuration),
        TEST(nothing_is_consumed_without_a_request),
        TEST(bad_arguments_use_the_request_up),
    };
    return UNIT_RUN("connect", tests);
}
