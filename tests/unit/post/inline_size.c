// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// inline_size.c -- how much inline data a connection takes: asked for, and refused by the
// device

#include "world.h"

TEST_THAT(queues_have_what_was_asked_for) {
    static const struct {
        uint32_t wanted, made;
    } cases[] = {{0, 8}, {7, 8}, {8, 8}, {9, 9}, {512, 512}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        fake_reset();
        world_peer(&w);
        world_cfg(&w, &(const struct shape){.max_sge = 2});
        MUST(rpma_conn_cfg_set_inline_size(w.h.cfg, cases[i].wanted));
        MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req));
        assert_int_equal(fake_last("rdma_create_qp_ex")->qp.cap.max_inline_data, cases[i].made);
        world_drop(&w);
    }
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_chk_cap(), and
// drivers/infiniband/sw/siw/siw_verbs.c, siw_create_qp(): EINVAL for more than the device
// takes.
TEST_THAT(request_needs_a_device_that_takes_as_much) {
    world_peer(&w);
    world_cfg(&w, &(const struct shape){0});
    MUST(rpma_conn_cfg_set_inline_size(w.h.cfg, 513));
    WATCH(w.h);
    EXPECT_ERROR(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req),
                 RPMA_E_PROVIDER, "rdma_create_qp_ex()", "rdma_create_qp_ex()", EINVAL,
                 .any_calls = true);
    assert_non_null(
        strstr(logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message, "max_inline_data=513"));
    assert_non_null(strstr(logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message,
                           "ask for less with rpma_conn_cfg_set_inline_size()"));
}

// The line names inline_size only if much was asked for and the error is EINVAL.
TEST_THAT(other_refusals_are_not_about_inline_data) {
    world_peer(&w);
    world_cfg(&w, &(const struct shape){0});
    for (int much = 0; much < 2; much++) {
        const int error = much ? ENOMEM : EINVAL;
        MUST(rpma_conn_cfg_set_inline_size(w.h.cfg, much ? 64 : 8));
        fake_fail("rdma_create_qp_ex", 1, error);
        WATCH(w.h);
        EXPECT_ERROR(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req),
                     RPMA_E_PROVIDER, "rdma_create_qp_ex()", "rdma_create_qp_ex()", error,
                     .any_calls = true);
        assert_null(strstr(logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message, "inline_size"));
        fake_faults_off();
    }
}
