// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// elements.c -- how many elements a work request has: asked for, checked, and limited

#include "world.h"

TEST_THAT(queues_have_what_was_asked_for) {
    static const uint32_t wanted[] = {1, 2, FAKE_MAX_SRQ_SGE};
    for (size_t i = 0; i < LENGTH(wanted); i++) {
        fake_reset();
        const struct shape shape = {.srq = true, .max_sge = wanted[i]};
        world_peer(&w);
        unit_begin();
        world_cfg(&w, &shape);
        MUST(rpma_srq_delete(&w.h.srq));
        MUST(rpma_srq_new(w.h.peer, w.h.srq_cfg, &w.h.srq));
        assert_int_equal(fake_last("ibv_create_srq")->srq.attr.max_sge, wanted[i]);
        MUST(rpma_conn_cfg_set_srq(w.h.cfg, NULL));
        MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req));
        const struct ibv_qp_cap *cap = &fake_last("rdma_create_qp_ex")->qp.cap;
        assert_int_equal(cap->max_send_sge, wanted[i]);
        assert_int_equal(cap->max_recv_sge, wanted[i]);
        assert_int_equal(cap->max_inline_data, 8);
        world_drop(&w);
    }
}

// Limits of devices: the smallest one and another.
static const struct {
    int most;
    const char *logs;
} limits[] = {
    {1, "max_sge of cfg is 2, the device has 1 (max_"},
    {6, "max_sge of cfg is 7, the device has 6 (max_"},
};

TEST_THAT(request_needs_a_device_with_as_many) {
    for (size_t i = 0; i < LENGTH(limits); i++) {
        const uint32_t most = (uint32_t)limits[i].most;
        fake_reset();
        fake_device()->max_sge = limits[i].most;
        world_peer(&w);
        world_cfg(&w, &(const struct shape){.max_sge = most + 1});
        WATCH(w.h);
        EXPECT_ERROR(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req),
                     RPMA_E_INVAL, "max_sge of cfg", "max_sge of cfg > max_sge of the device",
                     .any_calls = true, .logs = limits[i].logs);
        assert_int_equal(fake_count("rdma_create_qp_ex"), 0);
        MUST(rpma_conn_cfg_set_max_sge(w.h.cfg, most));
        MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req));
        world_drop(&w);
    }
}

TEST_THAT(incoming_request_needs_a_device_with_as_many) {
    fake_device()->max_sge = 6;
    world_peer(&w);
    world_cfg(&w, &(const struct shape){.max_sge = 7});
    world_listen(&w);
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
    WATCH(w.h);
    EXPECT_ERROR(rpma_ep_next_conn_req(w.h.ep, w.h.cfg, &w.h.req), RPMA_E_INVAL,
                 "max_sge of cfg", "max_sge of cfg > max_sge of the device", .any_calls = true,
                 .logs = "max_sge of cfg is 7, the device has 6 (max_sge)");
    assert_int_equal(fake_count("rdma_reject"), 1);
    assert_int_equal(fake_count("rdma_create_qp_ex"), 0);
}

TEST_THAT(shared_queue_needs_a_device_with_as_many) {
    for (size_t i = 0; i < LENGTH(limits); i++) {
        const uint32_t most = (uint32_t)limits[i].most;
        fake_reset();
        fake_device()->max_srq_sge = limits[i].most;
        world_peer(&w);
        MUST(rpma_srq_cfg_new(&w.h.srq_cfg));
        MUST(rpma_srq_cfg_set_max_sge(w.h.srq_cfg, most + 1));
        WATCH(w.h);
        EXPECT_ERROR(rpma_srq_new(w.h.peer, w.h.srq_cfg, &w.h.srq), RPMA_E_INVAL,
                     "max_sge of cfg", "max_sge of cfg > max_srq_sge of the device",
                     .logs = limits[i].logs);
        MUST(rpma_srq_cfg_set_max_sge(w.h.srq_cfg, most));
        MUST(rpma_srq_new(w.h.peer, w.h.srq_cfg, &w.h.srq));
        world_drop(&w);
    }
}
