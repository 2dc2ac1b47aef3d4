// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.c -- rpma_peer_new(), rpma_peer_delete()

#include "world.h"

#include <stdio.h>

// One line tells what the device can do and the build knows.
TEST_THAT(new_tells_what_the_device_has) {
    for (int device = 0; device < 16; device++) {
        const bool odp = device & 1, flush = device & 2, atomic_write = device & 4;
        struct rpma_peer *peer = NULL;
        char wanted[160];
        fake_reset();
        fake_device()->odp = odp;
        fake_device()->native_flush = flush;
        fake_device()->native_atomic_write = atomic_write;
        fake_device()->atomic_cap = device & 8 ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
        MUST(rpma_peer_new(fake_context(0), &peer));
        snprintf(wanted, sizeof(wanted),
                 "native atomic write: %s, native flush: %s, on-demand paging: %s, remote "
                 "atomics: %s",
                 atomic_write && BUILD_WRITES_ATOMICALLY ? "yes" : "no",
                 flush && BUILD_FLUSHES ? "yes" : "no", odp ? "yes" : "no",
                 device & 8 ? "yes" : "no");
        const struct logged_line *line = logged_line(RPMA_LOG_LEVEL_INFO, 0);
        assert_non_null(line);
        assert_string_equal(line->message, wanted);
        MUST(rpma_peer_delete(&peer));
    }
}

static void connect_another(struct rpma_conn **conn) {
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &w.h.req));
    MUST(rpma_conn_req_connect(&w.h.req, NULL, conn));
}

// 8 bytes that a flush can read into: registered once, shared by the connections of a peer. A
// deletion that fails may deregister them: the next connection registers others.
TEST_THAT(flush_target_is_made_once_per_peer) {
    struct rpma_conn *first = NULL;
    world_peer(&w);
    connect_another(&first);
    const struct fake_call *call = fake_last("ibv_reg_mr");
    assert_int_equal(call->reg_mr.length, 8);
    assert_int_equal(call->reg_mr.access, IBV_ACCESS_LOCAL_WRITE);
    connect_another(&w.h.conn);
    EXPECT_CALLS("rdma_create_event_channel rdma_migrate_id rdma_connect");
    MUST(rpma_conn_delete(&first));
    assert_int_equal(fake_count("ibv_dereg_mr"), 0);
    WATCH(w.h);
    EXPECT_ERROR(rpma_peer_delete(&w.h.peer), RPMA_E_PROVIDER, "the peer stays",
                 "a connection still uses the flush target",
                 .logs = "the peer before its connections (1)", .own_error = EBUSY);
    MUST(rpma_conn_delete(&w.h.conn));
    assert_int_equal(fake_count("ibv_dereg_mr"), 0);
    fake_fail("ibv_dereg_mr", 1, EBUSY);
    WATCH(w.h);
    EXPECT_ERROR(rpma_peer_delete(&w.h.peer), RPMA_E_PROVIDER, "the peer stays",
                 "ibv_dereg_mr()", EBUSY, "ibv_dereg_mr");
    WATCH(w.h);
    EXPECT_ERROR(rpma_peer_delete(&w.h.peer), RPMA_E_PROVIDER,
                 "the peer stays", // as h.mr lives
                 "ibv_dealloc_pd()", EBUSY, "ibv_dereg_mr ibv_dealloc_pd");
    connect_another(&w.h.conn);
    EXPECT_CALLS("rdma_create_event_channel rdma_migrate_id ibv_reg_mr rdma_connect");
    MUST(rpma_conn_delete(&w.h.conn));
    MUST(rpma_mr_dereg(&w.h.mr));
    MUST(rpma_peer_delete(&w.h.peer));
    EXPECT_CALLS("ibv_dereg_mr ibv_dealloc_pd");
}
