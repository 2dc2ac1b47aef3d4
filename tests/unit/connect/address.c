// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// address.c -- names, every address and route behind them, and the devices that these lead to

#include "arguments.h"

#include <netdb.h>
#include <stdio.h>

// ---- what all functions that take an address do --------------------------------------------

static const struct user {
    const char *name, *service;
    bool is_local;        // it binds; otherwise it resolves the address of another machine
    const char *steps[5]; // each of which may fail with one address
} users[] = {
    {"rpma_ep_listen", WORLD_PORT, true, {"rdma_create_id", "rdma_bind_addr", "rdma_listen"}},
    {"rpma_conn_req_new", WORLD_PORT, false,
     .steps = {"rdma_getaddrinfo", "rdma_create_id", "rdma_resolve_addr", "rdma_resolve_route",
               "rdma_create_qp_ex"}},
    {"rpma_utils_get_ibv_context", "", true, {"rdma_create_id", "rdma_bind_addr"}},
    {"rpma_utils_get_ibv_context", "", false,
     .steps = {"rdma_getaddrinfo", "rdma_create_id", "rdma_resolve_addr"}},
};

// The call that gets the address.
static const char *step_of(const struct user *user) {
    return user->is_local ? "rdma_bind_addr" : "rdma_resolve_addr";
}

static int call(const struct user *user) {
    static struct arguments a;
    arguments_good(&a, user->name, &w);
    (void)arguments_set(&a, "cfg", 0);
    (void)arguments_set(&a, "type",
                        user->is_local ? RPMA_UTIL_IBV_CONTEXT_LOCAL
                                       : RPMA_UTIL_IBV_CONTEXT_REMOTE);
    unit_begin();
    return arguments_call(&a);
}

static void must(const struct user *user) {
    unit_must(call(user), user->name, __FILE__, __LINE__);
}

// getaddrinfo() codes are not errno values.
static void expect_failure(const struct user *user, const char *cause, int error,
                           const char *logs) {
    WATCH(w.h);
    unit_expect_error(call(user), user->name,
                      &(const struct expected_error){RPMA_E_PROVIDER, "every address was tried",
                                                     cause, error, .any_calls = true,
                                                     .logs = logs},
                      __FILE__, __LINE__);
}

TEST_THAT(every_address_is_tried) {
    for (const struct user *user = users; user < users + LENGTH(users); user++)
        for (size_t i = 0; i < LENGTH(user->steps) && user->steps[i]; i++) {
            char cause[64];
            fake_reset();
            fake_device()->addresses = 3;
            world_peer(&w);
            fake_fail(user->steps[i], 1, ENETUNREACH);
            fake_fail(user->steps[i], 2, EHOSTUNREACH);
            must(user);
            world_expect_name(WORLD_ADDRESS, user->service, user->is_local ? AI_PASSIVE : 0);
            assert_int_equal(fake_count(user->steps[i]), 3);
            const struct fake_call *step = fake_last(step_of(user));
            assert_true(fake_addr_is(step->resolve.addr, 2));
            assert_null(step->resolve.source);
            assert_int_equal(step->resolve.timeout_ms, user->is_local ? 0 : 1000);
            assert_true(!w.h.context || w.h.context == fake_context(0));
            assert_int_equal(fake_last("rdma_create_id")->channel != NULL, w.h.ep != NULL);
            world_drop(&w);

            world_peer(&w);
            fake_faults_off();
            fake_fail_from(user->steps[i], 1, ETIMEDOUT);
            snprintf(cause, sizeof(cause), "%s()", user->steps[i]);
            expect_failure(user, cause, ETIMEDOUT, NULL);
            assert_int_equal(fake_count(user->steps[i]), 3);
            fake_faults_off();
            world_drop(&w);
        }
}

// A name may have many addresses, and IBACM may know a route with a source to each of them.
TEST_THAT(every_route_is_tried_before_its_address) {
    for (const struct user *user = users; user < users + LENGTH(users); user++) {
        if (user->is_local)
            continue;
        world_anew();
        fake_device()->addresses = 20;
        fake_device()->routes = 1;
        world_peer(&w);
        fake_fail_from("rdma_resolve_addr", 1, ENETUNREACH);
        expect_failure(user, "rdma_resolve_addr()", ENETUNREACH, NULL);
        assert_int_equal(fake_count("rdma_resolve_addr"), 40);
        for (int n = 0; n < 40; n++) {
            const struct fake_call *tried = fake_nth("rdma_resolve_addr", (unsigned)n + 1);
            const bool by_route = n % 2 == 0;
            assert_true(
                fake_addr_is(tried->resolve.addr, by_route ? FAKE_ROUTE_TO(n / 2) : n / 2));
            assert_true(by_route ? fake_addr_is(tried->resolve.source, FAKE_FIRST_ROUTE)
                                 : !tried->resolve.source);
        }
        fake_faults_off();
        must(user);
        assert_true(fake_addr_is(fake_last(step_of(user))->resolve.source, FAKE_FIRST_ROUTE));
    }
}

// ---- routes, devices and addresses ---------------------------------------------------------

static void expect_peer_addr(int number) {
    struct sockaddr_storage addr;
    memset(&addr, 0x5a, sizeof(addr));
    MUST(rpma_conn_req_get_peer_addr(w.h.req, &addr));
    EXPECT_CALLS("");
    assert_true(fake_addr_is((const struct sockaddr *)&addr, number));
}

// IPv4 and IPv6: the address of the client, or the address of the name that was reached.
TEST_THAT(request_knows_the_address_of_the_other_side) {
    for (int number = 0; number < 4; number++) {
        world_anew();
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
    }
}
