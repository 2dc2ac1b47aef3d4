// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_req_address.c -- outgoing connection requests: names, and every address behind them

#include "world.h"

#include <netdb.h>

static struct world w;

// getaddrinfo() codes are not errno values.
static void new_explains_a_name_that_is_not_known(void **state) {
    (void)state;
    world_peer(&w);
    fake_device()->gai_error = EAI_NONAME;
    WATCH(w.h);
    EXPECT_ERROR(rpma_conn_req_new(w.h.peer, "nowhere", WORLD_PORT, NULL, &w.h.req),
                 RPMA_E_PROVIDER, "every address was tried", "getaddrinfo()", .calls = "",
                 .logs = gai_strerror(EAI_NONAME));
    world_drop(&w);
}

static void new_tries_every_address(void **state) {
    (void)state;
    static const char *const steps[] = {"rdma_getaddrinfo", "rdma_create_id",
                                        "rdma_resolve_addr", "rdma_resolve_route",
                                        "rdma_create_qp_ex"};
    for (size_t i = 0; i < LENGTH(steps); i++) {
        fake_reset();
        fake_device()->addresses = 3;
        world_peer(&w);
        fake_fail(steps[i], 1, ENETUNREACH);
        fake_fail(steps[i], 2, EHOSTUNREACH);
        MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &w.h.req));
        assert_int_equal(fake_count(steps[i]), 3);
        assert_true(fake_addr_is(fake_last("rdma_resolve_addr")->resolve.addr, 2));
        world_drop(&w);
    }
    fake_reset();
    fake_device()->addresses = 2;
    world_peer(&w);
    fake_fail_from("rdma_resolve_route", 1, ETIMEDOUT);
    WATCH(w.h);
    EXPECT_ERROR(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &w.h.req),
                 RPMA_E_PROVIDER, "every address was tried", "rdma_resolve_route()", ETIMEDOUT,
                 "rdma_getaddrinfo rdma_create_id rdma_resolve_addr rdma_resolve_route "
                 "rdma_destroy_id rdma_freeaddrinfo rdma_getaddrinfo rdma_create_id "
                 "rdma_resolve_addr rdma_resolve_route rdma_destroy_id rdma_freeaddrinfo");
    world_drop(&w);
}

// A name may have many addresses, and IBACM may know a route with a source to each of them.
static void new_tries_every_route(void **state) {
    (void)state;
    fake_device()->addresses = 20;
    fake_device()->routes = 1;
    world_peer(&w);
    fake_fail_from("rdma_resolve_addr", 1, ENETUNREACH);
    EXPECT_ERROR(rpma_conn_req_new(w.h.peer, "many", WORLD_PORT, NULL, &w.h.req),
                 RPMA_E_PROVIDER, "every address was tried", "rdma_resolve_addr()", ENETUNREACH,
                 .any_calls = true);
    assert_int_equal(fake_count("rdma_resolve_addr"), 40);
    for (int n = 0; n < 40; n++) {
        const struct fake_call *tried = fake_nth("rdma_resolve_addr", (unsigned)n + 1);
        const bool by_route = n % 2 == 0;
        assert_true(fake_addr_is(tried->resolve.addr, by_route ? FAKE_ROUTE_TO(n / 2) : n / 2));
        assert_true(by_route ? fake_addr_is(tried->resolve.source, FAKE_FIRST_ROUTE)
                             : !tried->resolve.source);
    }
    world_drop(&w);
}

// A peer of one device cannot serve a route that leads over another.
static void new_fails_when_the_route_leads_over_another_device(void **state) {
    (void)state;
    w.h = (struct handles){0};
    MUST(rpma_peer_new(fake_context(1), &w.h.peer));
    WATCH(w.h);
    EXPECT_ERROR(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &w.h.req),
                 RPMA_E_PROVIDER, "every address was tried", "rdma_create_qp_ex()", EINVAL,
                 .any_calls = true);
    assert_non_null(strstr(logged_text(), "is on device fake0, the peer on fake1"));
    world_drop(&w);
}

static void expect_peer_addr(int number) {
    struct sockaddr_storage addr;
    memset(&addr, 0x5a, sizeof(addr));
    MUST(rpma_conn_req_get_peer_addr(w.h.req, &addr));
    EXPECT_CALLS("");
    assert_true(fake_addr_is((const struct sockaddr *)&addr, number));
}

// IPv4 and IPv6: the address of the client, or the address of the name that was reached.
static void request_knows_the_address_of_the_other_side(void **state) {
    (void)state;
    for (int number = 0; number < 4; number++) {
        fake_reset();
        fake_device()->addresses = 4;
        fake_device()->client = number;
        world_peer(&w);
        for (int before = 0; before < number; before++)
            fake_fail("rdma_resolve_route", (unsigned)before + 1, ENETUNREACH);
        MUST(rpma_conn_req_new(w.h.peer, "many", WORLD_PORT, NULL, &w.h.req));
        expect_peer_addr(number);
        MUST(rpma_conn_req_delete(&w.h.req));
        world_request(&w, &(const struct shape){.incoming = true});
        expect_peer_addr(number);
        world_drop(&w);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(new_explains_a_name_that_is_not_known),
        TEST(new_tries_every_address),
        TEST(new_tries_every_route),
        TEST(new_fails_when_the_route_leads_over_another_device),
        TEST(request_knows_the_address_of_the_other_side),
    };
    return UNIT_RUN("conn_req_address", tests);
}
