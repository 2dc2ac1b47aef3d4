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

// An incoming ID got its own channel with the request, so none of its events can get lost.
static void connects_on_its_own_channel_with_the_defaults(void **state) {
    (void)state;
    unsigned char bytes[56]; // the room in a request of InfiniBand
    const struct rpma_conn_private_data data[] = {
        {bytes, sizeof(bytes)}, {bytes, 1}, {NULL, 0}};
    memset(bytes, 0x77, sizeof(bytes));
    for (size_t i = 0; i < LENGTH(data); i++)
        for (int comes = 0; comes < 2; comes++) {
            const uint8_t len = data[i].len;
            fake_reset();
            new_request(comes ? &incoming : &outgoing);
            MUST(rpma_conn_req_connect(&w.h.req, len ? &data[i] : NULL, &w.h.conn));
            assert_null(w.h.req);
            assert_int_equal(fake_ids_on(world_event_fd(&w)), 1);
            if (comes)
                assert_int_equal(fake_ids_on(world_ep_fd(&w)), 1); // only the listener
            const struct fake_call *call = fake_last(comes ? "rdma_accept" : "rdma_connect");
            const struct rdma_conn_param *param = &call->connect.param;
            assert_int_equal(param->private_data_len, len);
            assert_memory_equal(call->connect.data, bytes, len);
            assert_int_equal(param->private_data != NULL, len != 0);
            assert_int_equal(param->responder_resources, RDMA_MAX_RESP_RES);
            assert_int_equal(param->initiator_depth, RDMA_MAX_INIT_DEPTH);
            assert_int_equal(param->flow_control, 1);
            assert_int_equal(param->retry_count, 7);
            assert_int_equal(param->rnr_retry_count, 7);
            world_drop(&w);
        }
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
        TEST(connects_on_its_own_channel_with_the_defaults),
        TEST(private_data_is_suspected_where_it_can_be),
        TEST(flush_target_is_made_once_per_peer),
        TEST(peer_is_not_deleted_under_a_connection),
        TEST(nothing_is_consumed_without_a_request),
        TEST(bad_arguments_use_the_request_up),
    };
    return UNIT_RUN("connect", tests);
}
