// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_end.c -- connections: disconnection and deletion

#include "world.h"

#include <stdio.h>

#define DROP_QP_AND_CQ "rdma_destroy_qp ibv_destroy_cq ibv_destroy_comp_channel "

static struct world w;
static const struct shape outgoing = {.name = "outgoing"};

static void disconnect_asks_the_provider(void **state) {
    (void)state;
    world_conn(&w, &outgoing);
    MUST(rpma_conn_disconnect(w.h.conn));
    EXPECT_CALLS("rdma_disconnect");
    assert_string_equal(logged_line(RPMA_LOG_LEVEL_NOTICE, 0)->message, "disconnecting");
    fake_fail("rdma_disconnect", 1, EINVAL);
    EXPECT_ERROR(rpma_conn_disconnect(w.h.conn), RPMA_E_PROVIDER, "rdma_disconnect() failed",
                 "rdma_disconnect()", EINVAL, "rdma_disconnect");
    world_drop(&w);
}

static void delete_releases_in_order(void **state) {
    (void)state;
    static const struct {
        struct shape shape;
        const char *calls;
    } cases[] = {
        {{.name = "plain"}, DROP_QP_AND_CQ "rdma_destroy_id rdma_destroy_event_channel"},
        {{.name = "incoming", .incoming = true},
         DROP_QP_AND_CQ "rdma_destroy_id rdma_destroy_event_channel"},
        {{.name = "rcq", .rcq_size = 1},
         DROP_QP_AND_CQ "ibv_destroy_cq ibv_destroy_comp_channel "
                        "rdma_destroy_id rdma_destroy_event_channel"},
        {{.name = "shared", .shared = true},
         "rdma_destroy_qp ibv_destroy_cq rdma_destroy_id ibv_destroy_comp_channel "
         "rdma_destroy_event_channel"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        world_conn(&w, &cases[i].shape);
        MUST(rpma_conn_delete(&w.h.conn));
        EXPECT_CALLS(cases[i].calls);
        assert_null(w.h.conn);
        world_drop(&w);
    }
}

static void delete_takes_all_steps_and_reports_the_first_failure(void **state) {
    (void)state;
    static const char *const steps[] = {"ibv_destroy_cq", "rdma_destroy_id",
                                        "ibv_destroy_comp_channel"};
    const struct shape shared = {.name = "shared", .shared = true};
    for (size_t i = 0; i < LENGTH(steps); i++)
        for (int more = 0; more < 2; more++) {
            char cause[64];
            fake_reset();
            world_conn(&w, &shared);
            snprintf(cause, sizeof(cause), "%s()", steps[i]);
            fake_fail(steps[i], 1, EIO);
            for (size_t later = i + 1; more && later < LENGTH(steps); later++)
                fake_fail(steps[later], 1, ENXIO);
            EXPECT_ERROR(rpma_conn_delete(&w.h.conn), RPMA_E_PROVIDER,
                         "the first failure counts", cause, EIO,
                         "rdma_destroy_qp ibv_destroy_cq rdma_destroy_id "
                         "ibv_destroy_comp_channel rdma_destroy_event_channel");
            assert_null(w.h.conn);
            world_drop(&w);
        }
}

// In any state, with events that were not taken and completions that were not polled.
static void delete_does_not_mind_what_waits(void **state) {
    (void)state;
    const struct ibv_wc wc = {.wr_id = 1};
    world_peer(&w);
    world_request(&w, &outgoing);
    MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
    fake_cm_event(world_event_fd(&w), RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    fake_complete(world_qp(&w)->send_cq, &wc);
    MUST(rpma_conn_delete(&w.h.conn));
    world_drop(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(disconnect_asks_the_provider),
        TEST(delete_releases_in_order),
        TEST(delete_takes_all_steps_and_reports_the_first_failure),
        TEST(delete_does_not_mind_what_waits),
    };
    return UNIT_RUN("conn_end", tests);
}
