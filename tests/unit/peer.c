// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.c -- rpma_peer_new(), rpma_peer_delete()

#include "world.h"

#include <stdio.h>

static struct world w;

// One line tells what the device can do and the build knows.
static void new_tells_what_the_device_has(void **state) {
    (void)state;
    for (int device = 0; device < 8; device++) {
        const bool odp = device & 1, flush = device & 2, atomic_write = device & 4;
        struct rpma_peer *peer = NULL;
        char wanted[128];
        fake_reset();
        fake_device()->odp = odp;
        fake_device()->native_flush = flush;
        fake_device()->native_atomic_write = atomic_write;
        MUST(rpma_peer_new(fake_context(0), &peer));
        snprintf(wanted, sizeof(wanted),
                 "native atomic write: %s, native flush: %s, on-demand paging: %s",
                 atomic_write && BUILD_WRITES_ATOMICALLY ? "yes" : "no",
                 flush && BUILD_FLUSHES ? "yes" : "no", odp ? "yes" : "no");
        const struct logged_line *line = logged_line(RPMA_LOG_LEVEL_INFO, 0);
        assert_non_null(line);
        assert_string_equal(line->message, wanted);
        MUST(rpma_peer_delete(&peer));
    }
}

// The failed deletion deregistered the flush target: the next connection registers another.
static void peer_that_stayed_serves_connections(void **state) {
    (void)state;
    static const struct shape outgoing = {.name = "outgoing"};
    world_conn(&w, &outgoing);
    MUST(rpma_conn_disconnect(w.h.conn));
    MUST(rpma_conn_delete(&w.h.conn));
    fake_fail("ibv_dealloc_pd", 1, EBUSY);
    assert_int_equal(rpma_peer_delete(&w.h.peer), RPMA_E_PROVIDER);
    MUST(rpma_conn_req_new(w.h.peer, "there", "7204", NULL, &w.h.req));
    fake_forget();
    MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
    EXPECT_CALLS("rdma_create_event_channel rdma_migrate_id ibv_reg_mr rdma_connect");
    world_drop(&w);
}

static void delete_is_refused_as_long_as_a_region_lives(void **state) {
    (void)state;
    world_peer(&w);
    WATCH(w.h.peer);
    EXPECT_ERROR(rpma_peer_delete(&w.h.peer), RPMA_E_PROVIDER, "the peer stays",
                 "ibv_dealloc_pd()", EBUSY, "ibv_dealloc_pd");
    world_drop(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(new_tells_what_the_device_has),
        TEST(peer_that_stayed_serves_connections),
        TEST(delete_is_refused_as_long_as_a_region_lives),
    };
    return UNIT_RUN("peer", tests);
}
