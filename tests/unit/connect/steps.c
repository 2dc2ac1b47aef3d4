// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// steps.c -- connections that are established in steps that do not block

#include "fixture.h"

#include <arpa/inet.h>
#include <poll.h>

#define TAKEN "rdma_get_cm_event rdma_ack_cm_event"

static void start_request(const struct rpma_conn_cfg *cfg) {
    MUST(rpma_conn_req_start(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, cfg, &w.h.req));
}

static bool readable(int fd) {
    struct pollfd watched = {.fd = fd, .events = POLLIN};
    return poll(&watched, 1, 0) == 1;
}

TEST_THAT(step_is_refused_before_its_event) {
    fake_device()->silent = true;
    fixture_peer(&w);
    start_request(NULL);
    const int fd = fixture_req_fd(&w);
    for (int step = 0; step < 2; step++) {
        assert_false(readable(fd));
        WATCH(w.h);
        EXPECT_ERROR(rpma_conn_req_resolve(w.h.req), RPMA_E_AGAIN, "not resolved yet",
                     "rdma_get_cm_event()", EAGAIN, "rdma_get_cm_event");
        fake_cm_event(fd, step ? RDMA_CM_EVENT_ROUTE_RESOLVED : RDMA_CM_EVENT_ADDR_RESOLVED,
                      NULL, 0);
        assert_true(readable(fd));
        unit_begin();
        assert_int_equal(rpma_conn_req_resolve(w.h.req), step ? 0 : RPMA_E_AGAIN);
        EXPECT_CALLS(step ? TAKEN " rdma_get_cm_event"
                          : TAKEN " rdma_resolve_route rdma_get_cm_event");
    }
    MUST(rpma_conn_req_resolve(w.h.req)); // the request remains resolved
    EXPECT_CALLS("rdma_get_cm_event");
}

// A changed link address neither ends a request nor changes its state.
TEST_THAT(address_change_keeps_the_request) {
    static const enum rdma_cm_event_type next[] = {RDMA_CM_EVENT_ADDR_RESOLVED,
                                                   RDMA_CM_EVENT_ROUTE_RESOLVED};
    fake_device()->silent = true;
    fixture_peer(&w);
    start_request(NULL);
    const int fd = fixture_req_fd(&w);
    for (size_t step = 0; step <= LENGTH(next); step++) {
        fake_cm_event(fd, RDMA_CM_EVENT_ADDR_CHANGE, NULL, 0);
        unit_begin();
        assert_int_equal(rpma_conn_req_resolve(w.h.req),
                         step < LENGTH(next) ? RPMA_E_AGAIN : 0);
        EXPECT_CALLS(TAKEN " rdma_get_cm_event");
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_INFO), 1);
        assert_false(readable(fd));
        if (step == LENGTH(next))
            break;
        // The same call processes the next event.
        fake_cm_event(fd, RDMA_CM_EVENT_ADDR_CHANGE, NULL, 0);
        fake_cm_event(fd, next[step], NULL, 0);
        unit_begin();
        assert_int_equal(rpma_conn_req_resolve(w.h.req), step ? 0 : RPMA_E_AGAIN);
        assert_false(readable(fd));
    }
}

// The calls and events that make an address fail, in its first step or later.
static const struct broken {
    const char *fails, *cause;
    int error;
    bool at_once;
} broken[] = {
    {"cut rdma_resolve_addr", "rdma_resolve_addr()", ETIMEDOUT, false},
    {"cut rdma_resolve_route", "rdma_resolve_route()", ETIMEDOUT, false},
    {"rdma_resolve_route", "rdma_resolve_route()", ENODEV, false},
    {"rdma_ack_cm_event", "rdma_ack_cm_event()", EIO, false},
    {"rdma_create_id", "rdma_create_id()", ENODEV, true},
    {"rdma_set_option", "rdma_set_option()", ENOSYS, true},
    {"rdma_resolve_addr", "rdma_resolve_addr()", ENETUNREACH, true},
};

enum { ADDRESSES = 4 };

// Makes the first count addresses fail by b, in rpma_conn_req_start() or in
// rpma_conn_req_resolve(). For the latter, the first address must fail after its first step.
static void fail_addresses(const struct broken *b, bool in_start, unsigned count) {
    fixture_reset();
    fake_device()->addresses = ADDRESSES;
    fixture_peer(&w);
    MUST(rpma_conn_cfg_new(&w.h.cfg));
    MUST(rpma_conn_cfg_set_tos(w.h.cfg, 0x68));
    const bool later = b->at_once && !in_start;
    if (later) {
        fake_fail("cut rdma_resolve_addr", 1, ETIMEDOUT);
        start_request(w.h.cfg);
    }
    if (count == ADDRESSES)
        fake_fail_from(b->fails, 1, b->error);
    for (unsigned n = 1; n <= count - later; n++)
        fake_fail(b->fails, n, b->error);
    if (!later)
        start_request(w.h.cfg);
}

static void expect_address(int number) {
    struct sockaddr_storage addr;
    MUST(rpma_conn_req_resolve(w.h.req));
    assert_int_equal(fake_ids_on(fixture_req_fd(&w)), 1);
    MUST(rpma_conn_req_get_peer_addr(w.h.req, &addr));
    assert_true(fake_addr_is((const struct sockaddr *)&addr, number));
    MUST(rpma_conn_req_setup(w.h.req, NULL));
}

TEST_THAT(next_address_is_tried) {
    for (size_t i = 0; i < LENGTH(broken); i++)
        for (int in_start = 0; in_start <= broken[i].at_once; in_start++) {
            fail_addresses(&broken[i], in_start, ADDRESSES - 1);
            expect_address(ADDRESSES - 1);
        }
}

TEST_THAT(last_failure_is_logged) {
    for (size_t i = 0; i < LENGTH(broken); i++) {
        fail_addresses(&broken[i], false, ADDRESSES);
        WATCH(w.h);
        EXPECT_ERROR(rpma_conn_req_resolve(w.h.req), RPMA_E_PROVIDER,
                     "or rdma_resolve_route() failed; every", broken[i].cause, broken[i].error,
                     .any_calls = true);
        fake_faults_off();
        WATCH(w.h);
        EXPECT_ERROR(rpma_conn_req_resolve(w.h.req), RPMA_E_INVAL, "has failed",
                     "the request has failed", .logs = "the request has failed: delete it");
        MUST(rpma_conn_req_delete(&w.h.req));
        EXPECT_CALLS("rdma_destroy_id rdma_destroy_event_channel");
    }
}

// A failed address is replaced even if the next addresses never resolve.
TEST_THAT(skipping_addresses_does_not_wait) {
    fake_device()->addresses = ADDRESSES;
    fake_device()->silent = true;
    fixture_peer(&w);
    start_request(NULL);
    fake_cm_event_status(fixture_req_fd(&w), RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, NULL, 0);
    fake_fail("rdma_create_id", 1, ENODEV);
    unit_begin();
    assert_int_equal(rpma_conn_req_resolve(w.h.req), RPMA_E_AGAIN);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_ERROR), 0);
    assert_true(fake_addr_is(fake_last("rdma_resolve_addr")->resolve.addr, 2));
}

// A failure of the channel does not concern the request, so the request remains valid.
TEST_THAT(failed_channel_keeps_the_connection) {
    fake_device()->addresses = 2;
    fixture_peer(&w);
    start_request(NULL);
    fake_fail("rdma_get_cm_event", 1, EBADF);
    WATCH(w.h);
    EXPECT_ERROR(rpma_conn_req_resolve(w.h.req), RPMA_E_PROVIDER, "rdma_get_cm_event() failed",
                 "rdma_get_cm_event()", EBADF, "rdma_get_cm_event");
    MUST(rpma_conn_req_resolve(w.h.req));
}

static void expect_source(const char *text, const struct sockaddr *seen) {
    char addr[INET6_ADDRSTRLEN] = "none";
    if (seen && seen->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)seen)->sin_addr, addr,
                  sizeof(addr));
    if (seen && seen->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)seen)->sin6_addr, addr,
                  sizeof(addr));
    assert_string_equal(addr, text);
}

// Only addresses of the family of the source are tried.
TEST_THAT(source_address_is_used) {
    static const char *const sources[] = {"127.0.0.7", "fd00::7"};
    struct sockaddr_storage addr;
    for (int steps = 0; steps < 2; steps++)
        for (int family = 0; family < 2; family++) {
            fixture_reset();
            fake_device()->addresses = 4;
            fixture_peer(&w);
            MUST(rpma_conn_cfg_new(&w.h.cfg));
            MUST(rpma_conn_cfg_get_source_addr(w.h.cfg, &addr));
            assert_int_equal(addr.ss_family, AF_UNSPEC);
            MUST(rpma_conn_cfg_set_source_addr(w.h.cfg, sources[family]));
            MUST(rpma_conn_cfg_get_source_addr(w.h.cfg, &addr));
            expect_source(sources[family], (const struct sockaddr *)&addr);
            if (steps)
                start_request(w.h.cfg);
            else
                MUST(rpma_conn_req_new(w.h.peer, "many", FIXTURE_PORT, w.h.cfg, &w.h.req));
            const struct fake_call *call = fake_last("rdma_resolve_addr");
            expect_source(sources[family], call->resolve.source);
            assert_true(fake_addr_is(call->resolve.addr, family));
            MUST(rpma_conn_req_delete(&w.h.req));
            MUST(rpma_conn_cfg_set_source_addr(w.h.cfg, NULL));
            start_request(w.h.cfg);
            assert_null(fake_last("rdma_resolve_addr")->resolve.source);
        }
}

// A source port without an address is a port of the wildcard address of each family. In Linux
// one ID at a time can use a port, so the ID of the previous address must be destroyed first.
TEST_THAT(source_port_is_used_with_every_address) {
    for (int steps = 0; steps < 2; steps++)
        for (int with_address = 0; with_address < 2; with_address++) {
            struct sockaddr_storage addr;
            fixture_reset();
            fake_device()->addresses = ADDRESSES;
            fixture_peer(&w);
            MUST(rpma_conn_cfg_new(&w.h.cfg));
            MUST(rpma_conn_cfg_set_source_port(w.h.cfg, 7300));
            if (with_address)
                MUST(rpma_conn_cfg_set_source_addr(w.h.cfg, "127.0.0.7"));
            fake_fail(steps ? "cut rdma_resolve_route" : "rdma_resolve_route", 1, ENETUNREACH);
            if (steps) {
                start_request(w.h.cfg);
                MUST(rpma_conn_req_resolve(w.h.req));
            } else {
                MUST(rpma_conn_req_new(w.h.peer, "many", FIXTURE_PORT, w.h.cfg, &w.h.req));
            }
            assert_int_equal(fake_count("rdma_resolve_addr"), steps ? 1 : 2);
            expect_source(with_address ? "127.0.0.7" : "::",
                          fake_last("rdma_resolve_addr")->resolve.source);
            MUST(rpma_conn_req_get_local_addr(w.h.req, &addr));
            expect_source(with_address ? "127.0.0.7" : "::2", (const struct sockaddr *)&addr);
            assert_int_equal(ntohs(((const struct sockaddr_in *)&addr)->sin_port), 7300);

            // Another request cannot use the port, and does not change the first one.
            struct rpma_conn_req *other = NULL;
            unit_begin();
            assert_int_equal(
                rpma_conn_req_start(w.h.peer, "127.0.0.1", FIXTURE_PORT, w.h.cfg, &other),
                RPMA_E_PROVIDER);
            assert_null(other);
            assert_int_equal(errno, with_address ? EADDRINUSE : EADDRNOTAVAIL);
            assert_int_equal(logged_count(RPMA_LOG_LEVEL_ERROR), 1);
            MUST(rpma_conn_req_delete(&w.h.req));
            MUST(rpma_conn_req_start(w.h.peer, "127.0.0.1", FIXTURE_PORT, w.h.cfg, &other));
            MUST(rpma_conn_req_delete(&other));
        }
}

// The peer or the device may end a resolved request.
TEST_THAT(ready_request_can_fail) {
    static const struct {
        enum rdma_cm_event_type event;
        bool set_up;
        const char *deleted;
    } cases[] = {
        {RDMA_CM_EVENT_DEVICE_REMOVAL, false, "rdma_destroy_id rdma_destroy_event_channel"},
        {RDMA_CM_EVENT_MULTICAST_JOIN, true,
         "rdma_destroy_qp ibv_destroy_cq ibv_destroy_comp_channel rdma_destroy_id "
         "rdma_destroy_event_channel"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        fixture_reset();
        fake_device()->addresses = 2; // the second one is not tried
        fixture_peer(&w);
        start_request(NULL);
        MUST(rpma_conn_req_resolve(w.h.req));
        if (cases[i].set_up)
            MUST(rpma_conn_req_setup(w.h.req, NULL));
        fake_cm_event(fixture_req_fd(&w), cases[i].event, NULL, 0);
        WATCH(w.h);
        EXPECT_ERROR(rpma_conn_req_resolve(w.h.req), RPMA_E_PROVIDER, "can no longer",
                     "the request can no longer become a connection", .calls = TAKEN,
                     .logs = rdma_event_str(cases[i].event));
        MUST(rpma_conn_req_delete(&w.h.req));
        EXPECT_CALLS(cases[i].deleted);
    }
}
