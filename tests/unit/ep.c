// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// ep.c -- endpoints: listening, shutting down, waiting for requests

#include "interrupt.h"
#include "world.h"

#include <netdb.h>

#include <stdio.h>

#define LISTENED "rdma_create_event_channel rdma_create_id rdma_bind_addr "

static struct world w;

static void new_ep(void) {
    world_peer(&w);
    world_listen(&w);
}

static void ask(const char *data, uint8_t len) {
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, data, len);
}

// ---- rpma_ep_listen() ----------------------------------------------------------------------

static void listen_binds_and_listens(void **state) {
    (void)state;
    new_ep();
    EXPECT_CALLS(LISTENED "rdma_listen");
    assert_string_equal(logged_line(RPMA_LOG_LEVEL_NOTICE, 0)->message,
                        "listening on " WORLD_ADDRESS ":" WORLD_PORT);
    const struct fake_call *name = fake_last("getaddrinfo");
    assert_string_equal(name->getaddrinfo.node, WORLD_ADDRESS);
    assert_string_equal(name->getaddrinfo.service, WORLD_PORT);
    assert_int_equal(name->getaddrinfo.flags, AI_PASSIVE);
    assert_int_equal(name->getaddrinfo.family, AF_UNSPEC);
    assert_int_equal(name->getaddrinfo.socktype, SOCK_STREAM);
    assert_int_equal(name->getaddrinfo.protocol, IPPROTO_TCP);
    assert_true(fake_addr_is(fake_last("rdma_bind_addr")->resolve.addr, 0));
    assert_int_equal(fake_last("rdma_listen")->backlog, 0);
    assert_int_equal(fake_ids_on(world_ep_fd(&w)), 1);
    MUST(rpma_ep_shutdown(&w.h.ep));
    EXPECT_CALLS("rdma_destroy_id rdma_destroy_event_channel");
    assert_null(w.h.ep);
    world_drop(&w);
}

static void listen_fails_with_each_call(void **state) {
    (void)state;
    static const char *const tail = " rdma_destroy_id rdma_destroy_event_channel";
    static const struct {
        const char *call, *calls;
        bool tail;
    } cases[] = {
        {"rdma_create_event_channel", "rdma_create_event_channel", false},
        {"getaddrinfo", "rdma_create_event_channel rdma_destroy_event_channel", false},
        {"rdma_create_id",
         "rdma_create_event_channel rdma_create_id rdma_destroy_event_channel", false},
        {"rdma_bind_addr", "rdma_create_event_channel rdma_create_id rdma_bind_addr", true},
        {"rdma_listen", LISTENED "rdma_listen", true},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char cause[64], calls[256];
        fake_reset();
        world_peer(&w);
        snprintf(cause, sizeof(cause), "%s()", cases[i].call);
        snprintf(calls, sizeof(calls), "%s%s", cases[i].calls, cases[i].tail ? tail : "");
        fake_fail(cases[i].call, 1, EADDRINUSE);
        WATCH(w.h);
        EXPECT_ERROR(rpma_ep_listen(w.h.peer, WORLD_ADDRESS, WORLD_PORT, &w.h.ep),
                     RPMA_E_PROVIDER, "every address was tried", cause, EADDRINUSE, calls);
        world_drop(&w);
    }
}

static void listen_tries_every_address(void **state) {
    (void)state;
    static const char *const steps[] = {"rdma_create_id", "rdma_bind_addr", "rdma_listen"};
    for (size_t i = 0; i < LENGTH(steps); i++) {
        fake_reset();
        fake_device()->addresses = 2;
        world_peer(&w);
        fake_fail(steps[i], 1, EADDRNOTAVAIL);
        world_listen(&w);
        assert_int_equal(fake_count(steps[i]), 2);
        assert_true(fake_addr_is(fake_last("rdma_bind_addr")->resolve.addr, 1));
        assert_int_equal(fake_ids_on(world_ep_fd(&w)), 1);
        world_drop(&w);
    }
}

static void listen_returns_all_when_memory_is_out(void **state) {
    (void)state;
    world_peer(&w);
    fake_fail("malloc", 1, ENOMEM);
    WATCH(w.h);
    EXPECT_ERROR(rpma_ep_listen(w.h.peer, WORLD_ADDRESS, WORLD_PORT, &w.h.ep), RPMA_E_NOMEM,
                 "allocation failed", "out of memory", .any_calls = true);
    world_drop(&w);
}

static void shutdown_keeps_the_endpoint_when_refused(void **state) {
    (void)state;
    new_ep();
    fake_fail("rdma_destroy_id", 1, EBUSY);
    WATCH(w.h);
    EXPECT_ERROR(rpma_ep_shutdown(&w.h.ep), RPMA_E_PROVIDER, "the endpoint stays",
                 "rdma_destroy_id()", EBUSY, "rdma_destroy_id");
    ask(NULL, 0);
    MUST(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req)); // it still listens
    world_drop(&w);
}

// ---- waiting -------------------------------------------------------------------------------

static void empty_endpoint_says_so(void **state) {
    (void)state;
    static const int errors[] = {EAGAIN, ENODATA};
    new_ep();
    world_nonblocking(world_ep_fd(&w));
    WATCH(w.h);
    EXPECT_ERROR(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req), RPMA_E_NO_EVENT,
                 "no request waits", "rdma_get_cm_event()", EAGAIN, "rdma_get_cm_event");
    for (size_t i = 0; i < LENGTH(errors); i++) {
        fake_fail("rdma_get_cm_event", 1, errors[i]);
        EXPECT_ERROR(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req), RPMA_E_NO_EVENT,
                     "no request waits", "rdma_get_cm_event()", errors[i], "rdma_get_cm_event");
        fake_faults_off();
    }
    world_drop(&w);
}

static void broken_endpoint_is_the_providers(void **state) {
    (void)state;
    new_ep();
    fake_fail("rdma_get_cm_event", 1, EBADF);
    WATCH(w.h);
    EXPECT_ERROR(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req), RPMA_E_PROVIDER,
                 "rdma_get_cm_event() failed", "rdma_get_cm_event()", EBADF,
                 "rdma_get_cm_event");
    world_drop(&w);
}

// A server that loops until a signal handler sets a flag has to see that flag.
static void signal_ends_the_wait(void **state) {
    (void)state;
    new_ep();
    WATCH(w.h);
    interrupt_wait(NULL);
    EXPECT_ERROR(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req), RPMA_E_PROVIDER,
                 "rdma_get_cm_event() failed", "rdma_get_cm_event()", EINTR,
                 "rdma_get_cm_event", .level = RPMA_LOG_LEVEL_DEBUG);
    interrupt_done();
    world_drop(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(listen_binds_and_listens),
        TEST(listen_fails_with_each_call),
        TEST(listen_tries_every_address),
        TEST(listen_returns_all_when_memory_is_out),
        TEST(shutdown_keeps_the_endpoint_when_refused),
        TEST(empty_endpoint_says_so),
        TEST(broken_endpoint_is_the_providers),
        TEST(signal_ends_the_wait),
    };
    return UNIT_RUN("ep", tests);
}
