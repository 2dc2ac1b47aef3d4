// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.c -- rpma_peer_new(), rpma_peer_delete()

#include "world.h"

#include <stdio.h>

static struct world w;

static void new_asks_the_device_once(void **state) {
    (void)state;
    struct rpma_peer *peer = NULL;
    MUST(rpma_peer_new(fake_context(0), &peer));
    EXPECT_CALLS("ibv_query_device_ex ibv_alloc_pd");
    assert_non_null(peer);
    MUST(rpma_peer_delete(&peer));
    EXPECT_CALLS("ibv_dealloc_pd");
    assert_null(peer);
}

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

static void new_fails_when_the_device_says_nothing(void **state) {
    (void)state;
    struct rpma_peer *peer = NULL;
    fake_fail("ibv_query_device_ex", 1, EIO);
    WATCH(peer);
    EXPECT_ERROR(rpma_peer_new(fake_context(0), &peer), RPMA_E_PROVIDER,
                 "ibv_query_device_ex() failed", "ibv_query_device_ex()", EIO,
                 "ibv_query_device_ex");
}

// The errno of ibv_alloc_pd() decides.
static void new_fails_without_protection_domain(void **state) {
    (void)state;
    static const struct {
        int error, code;
        const char *condition;
    } cases[] = {
        {ENOMEM, RPMA_E_NOMEM, "errno == ENOMEM"},
        {EIO, RPMA_E_PROVIDER, "errno not in {0, ENOMEM}"},
        {EACCES, RPMA_E_PROVIDER, "errno not in {0, ENOMEM}"},
        {0, RPMA_E_UNKNOWN, "errno == 0"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rpma_peer *peer = NULL;
        fake_reset();
        fake_fail("ibv_alloc_pd", 1, cases[i].error);
        WATCH(peer);
        EXPECT_ERROR(rpma_peer_new(fake_context(0), &peer), cases[i].code, cases[i].condition,
                     "ibv_alloc_pd()", cases[i].error, "ibv_query_device_ex ibv_alloc_pd");
    }
}

// The provider may change errno on its way to success; the library does not clear it.
static void new_never_clears_errno(void **state) {
    (void)state;
    struct rpma_peer *peer = NULL;
    errno = EXDEV;
    assert_int_equal(rpma_peer_new(fake_context(0), &peer), 0);
    assert_int_not_equal(errno, 0);
    MUST(rpma_peer_delete(&peer));
}

static void new_returns_the_domain_when_memory_is_out(void **state) {
    (void)state;
    struct rpma_peer *peer = NULL;
    fake_fail("malloc", 1, ENOMEM);
    WATCH(peer);
    EXPECT_ERROR(rpma_peer_new(fake_context(0), &peer), RPMA_E_NOMEM, "allocation failed",
                 "out of memory", .calls = "ibv_query_device_ex ibv_alloc_pd ibv_dealloc_pd");
}

static void delete_keeps_the_peer_when_refused(void **state) {
    (void)state;
    struct rpma_peer *peer = NULL;
    MUST(rpma_peer_new(fake_context(0), &peer));
    fake_fail("ibv_dealloc_pd", 1, EBUSY);
    WATCH(peer);
    EXPECT_ERROR(rpma_peer_delete(&peer), RPMA_E_PROVIDER, "the peer stays", "ibv_dealloc_pd()",
                 EBUSY, "ibv_dealloc_pd");
    MUST(rpma_peer_delete(&peer));
    assert_null(peer);
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
        TEST(new_asks_the_device_once),
        TEST(new_tells_what_the_device_has),
        TEST(new_fails_when_the_device_says_nothing),
        TEST(new_fails_without_protection_domain),
        TEST(new_never_clears_errno),
        TEST(new_returns_the_domain_when_memory_is_out),
        TEST(delete_keeps_the_peer_when_refused),
        TEST(peer_that_stayed_serves_connections),
        TEST(delete_is_refused_as_long_as_a_region_lives),
    };
    return UNIT_RUN("peer", tests);
}
