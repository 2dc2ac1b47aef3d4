// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// options.c -- settings of a connection that go to the connection manager: acknowledgement
// timeout, retry counts and type of service

#include "world.h"

static const struct shape sides[] = {{.name = "outgoing"},
                                     {.name = "incoming", .incoming = true}};

// A peer, a configuration and, for the side that accepts, an endpoint where a request waits.
static void new_side(const struct shape *side) {
    world_peer(&w);
    world_cfg(&w, side);
    if (!side->incoming)
        return;
    world_listen(&w);
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
}

static int new_request(const struct shape *side) {
    return side->incoming
               ? rpma_ep_next_conn_req(w.h.ep, w.h.cfg, &w.h.req)
               : rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req);
}

static void expect_option(int name, unsigned char value) {
    const struct fake_call *call = fake_last("rdma_set_option");
    assert_non_null(call);
    assert_int_equal(call->option.level, RDMA_OPTION_ID);
    assert_int_equal(call->option.name, name);
    assert_int_equal(call->option.length, 1);
    assert_int_equal(call->option.value, value);
}

// ---- acknowledgement timeout ---------------------------------------------------------------

// InfiniBand Architecture Specification 1.4, local ACK timeout: 4.096 us * 2^n. The values are
// those at which n changes: 2^n * 4.096 us in whole milliseconds, and one more.
TEST_THAT(timeout_becomes_the_exponent_that_covers_it) {
    static const struct {
        int ms;
        unsigned char exponent;
    } cases[] = {{1, 8},      {2, 9},        {3, 10},       {4, 10},      {5, 11},
                 {8, 11},     {9, 12},       {100, 15},     {134, 15},    {135, 16},
                 {268, 16},   {269, 17},     {1000, 18},    {1073, 18},   {1074, 19},
                 {60000, 24}, {4398046, 30}, {4398047, 31}, {8796093, 31}};
    for (size_t side = 0; side < LENGTH(sides); side++)
        for (size_t i = 0; i < LENGTH(cases); i++) {
            fake_reset();
            new_side(&sides[side]);
            MUST(rpma_conn_cfg_set_ack_timeout(w.h.cfg, cases[i].ms));
            MUST(new_request(&sides[side]));
            assert_int_equal(fake_count("rdma_set_option"), 1);
            expect_option(RDMA_OPTION_ID_ACK_TIMEOUT, cases[i].exponent);
            if (side == 0)
                assert_ptr_equal(fake_last("rdma_set_option")->object,
                                 fake_last("rdma_resolve_route")->object);
            world_drop(&w);
        }
}

// ---- retry counts --------------------------------------------------------------------------

// The request keeps them: what becomes of the configuration does not matter.
TEST_THAT(counts_go_into_the_request_and_into_the_answer) {
    for (size_t side = 0; side < LENGTH(sides); side++)
        for (uint32_t count = 0; count <= 7; count++) {
            fake_reset();
            new_side(&sides[side]);
            MUST(rpma_conn_cfg_set_ack_timeout(w.h.cfg, 100));
            MUST(rpma_conn_cfg_set_retry_count(w.h.cfg, count));
            MUST(rpma_conn_cfg_set_rnr_retry_count(w.h.cfg, 7 - count));
            MUST(new_request(&sides[side]));
            MUST(rpma_conn_cfg_set_ack_timeout(w.h.cfg, 1));
            MUST(rpma_conn_cfg_set_retry_count(w.h.cfg, 7 - count));
            MUST(rpma_conn_cfg_delete(&w.h.cfg));
            MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
            assert_int_equal(fake_count("rdma_set_option"), 0);
            const struct fake_call *call =
                fake_last(sides[side].incoming ? "rdma_accept" : "rdma_connect");
            assert_int_equal(call->connect.param.retry_count, count);
            assert_int_equal(call->connect.param.rnr_retry_count, 7 - count);
            world_drop(&w);
        }
}

TEST_THAT(every_address_gets_the_settings) {
    new_side(&sides[0]);
    fake_device()->addresses = 3;
    MUST(rpma_conn_cfg_set_tos(w.h.cfg, 0x68));
    MUST(new_request(&sides[0]));
    expect_option(RDMA_OPTION_ID_TOS, 0x68);
    MUST(rpma_conn_req_delete(&w.h.req));
    MUST(rpma_conn_cfg_set_tos(w.h.cfg, 0xff));
    MUST(rpma_conn_cfg_set_ack_timeout(w.h.cfg, 1));
    fake_fail("rdma_resolve_addr", 1, ENETUNREACH);
    fake_fail("rdma_create_qp_ex", 1, ENOMEM);
    MUST(new_request(&sides[0]));
    assert_int_equal(fake_count("rdma_set_option"), 3 + 2);
}

// ---- defaults ------------------------------------------------------------------------------

// The defaults set no option, as in the original. The accepting side takes over the type of
// service of the request.
TEST_THAT(defaults_ask_for_nothing) {
    for (size_t side = 0; side < LENGTH(sides); side++) {
        fake_reset();
        new_side(&sides[side]);
        MUST(rpma_conn_cfg_set_ack_timeout(w.h.cfg, 0));
        MUST(rpma_conn_cfg_set_tos(w.h.cfg, sides[side].incoming ? 0x68 : 0));
        MUST(new_request(&sides[side]));
        assert_int_equal(fake_count("rdma_set_option"), 0);
        world_drop(&w);
    }
}
