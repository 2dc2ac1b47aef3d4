// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// srq.c -- shared receive queues

#include "world.h"

TEST_THAT(new_makes_queue_and_receive_cq) {
    static const struct {
        uint32_t rq, rcq; // 0, 0: no configuration
        uint32_t cqe;     // 0: no CQ
    } cases[] = {{0, 0, 100}, {7, 0, 0}, {7, UINT32_MAX, INT32_MAX}};
    const struct ibv_wc wc = {.wr_id = 42};
    world_peer(&w);
    MUST(rpma_srq_cfg_new(&w.h.srq_cfg));
    fake_device()->max_cqe = INT32_MAX;
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
            assert_true(fake_armed(fake_cq_on(world_cq_fd(rcq), 0)));
            fake_complete(fake_cq_on(world_cq_fd(rcq), 0), &wc);
            MUST(rpma_cq_wait(rcq));
            MUST(rpma_cq_get_wc(rcq, 1, &got, NULL));
            assert_int_equal(got.wr_id, 42);
        }
        MUST(rpma_srq_delete(&w.h.srq)); // a misuse unless the event is acknowledged
    }
}

TEST_THAT(limit_reaches_the_device) {
    world_peer(&w);
    MUST(rpma_srq_new(w.h.peer, NULL, &w.h.srq));
    static const uint32_t limits[] = {1, 0, 127}; // 100 were asked for, see fake_slots()
    for (size_t i = 0; i < LENGTH(limits); i++) {
        MUST(rpma_srq_set_limit(w.h.srq, limits[i]));
        EXPECT_CALLS("ibv_modify_srq");
        assert_int_equal(fake_srq_limit(fake_srq()), limits[i]);
    }
}
