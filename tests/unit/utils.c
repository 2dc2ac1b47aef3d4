// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// utils.c -- devices behind addresses, on-demand paging, texts

#include "world.h"

#include <limits.h>
#include <netdb.h>
#include <stdio.h>

static const struct {
    enum rpma_util_ibv_context_type type;
    const char *step;
    const char *begin, *end; // the calls around the step
    int flags, timeout_ms;
} sides[] = {
    {RPMA_UTIL_IBV_CONTEXT_LOCAL, "rdma_bind_addr", "", "", AI_PASSIVE, 0},
    {RPMA_UTIL_IBV_CONTEXT_REMOTE, "rdma_resolve_addr", "rdma_getaddrinfo ",
     " rdma_freeaddrinfo", 0, RPMA_DEFAULT_TIMEOUT_MS},
};

static char calls[256];

static const char *calls_of(size_t side, const char *middle) {
    snprintf(calls, sizeof(calls), "%s%s%s", sides[side].begin, middle, sides[side].end);
    return calls;
}

static const char *all_calls_of(size_t side) {
    char middle[64];
    snprintf(middle, sizeof(middle), "rdma_create_id %s rdma_destroy_id", sides[side].step);
    return calls_of(side, middle);
}

static void address_leads_to_a_device(void **state) {
    (void)state;
    for (size_t i = 0; i < LENGTH(sides); i++) {
        struct ibv_context *context = NULL;
        MUST(rpma_utils_get_ibv_context("fe80::1", sides[i].type, &context));
        EXPECT_CALLS(all_calls_of(i));
        assert_ptr_equal(context, fake_context(0));
        world_expect_name("fe80::1", "", sides[i].flags);
        assert_true(fake_addr_is(fake_last(sides[i].step)->resolve.addr, 0));
        assert_null(fake_last(sides[i].step)->resolve.source);
        assert_null(fake_last("rdma_create_id")->channel);
        assert_int_equal(fake_last(sides[i].step)->resolve.timeout_ms, sides[i].timeout_ms);
    }
}

// Routes that IBACM knows to a remote address are tried before the address itself.
static void routes_with_a_source_are_tried(void **state) {
    (void)state;
    struct ibv_context *context = NULL;
    fake_device()->routes = 1;
    MUST(rpma_utils_get_ibv_context("host", RPMA_UTIL_IBV_CONTEXT_REMOTE, &context));
    const struct fake_call *step = fake_last("rdma_resolve_addr");
    assert_true(fake_addr_is(step->resolve.addr, FAKE_ROUTE_TO(0)));
    assert_true(fake_addr_is(step->resolve.source, FAKE_FIRST_ROUTE));
    fake_fail("rdma_resolve_addr", 1, ENETUNREACH);
    MUST(rpma_utils_get_ibv_context("host", RPMA_UTIL_IBV_CONTEXT_REMOTE, &context));
    assert_int_equal(fake_count("rdma_resolve_addr"), 2);
    step = fake_last("rdma_resolve_addr");
    assert_true(fake_addr_is(step->resolve.addr, 0));
    assert_null(step->resolve.source);
}

static void unknown_name_is_explained(void **state) {
    (void)state;
    struct ibv_context *context = fake_context(1);
    fake_device()->gai_error = EAI_FAMILY;
    WATCH(context);
    EXPECT_ERROR(rpma_utils_get_ibv_context("?", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context),
                 RPMA_E_PROVIDER, "every address was tried", "getaddrinfo()",
                 .logs = gai_strerror(EAI_FAMILY), .calls = "");
}

// IPv6 addresses are full of colons: brackets keep the port apart.
static void addresses_are_written_with_their_ports(void **state) {
    (void)state;
    static const char *const written[] = {"(addr=127.0.0.1:0)", "(addr=[::2]:0)"};
    for (int last = 0; last < (int)LENGTH(written); last++) {
        struct ibv_context *context = NULL;
        fake_reset();
        fake_device()->addresses = last + 1;
        fake_fail_from("rdma_bind_addr", 1, EADDRNOTAVAIL);
        EXPECT_ERROR(rpma_utils_get_ibv_context("host", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context),
                     RPMA_E_PROVIDER, "every address was tried", "rdma_bind_addr()",
                     EADDRNOTAVAIL, .any_calls = true);
        const struct logged_line *line = logged_line(RPMA_LOG_LEVEL_ERROR, 0);
        assert_non_null(strstr(line->message, written[last]));
    }
}

static void every_address_is_tried(void **state) {
    (void)state;
    for (size_t i = 0; i < LENGTH(sides); i++) {
        struct ibv_context *context = NULL;
        fake_reset();
        fake_device()->addresses = 2;
        fake_fail(sides[i].step, 1, EADDRNOTAVAIL);
        MUST(rpma_utils_get_ibv_context("host", sides[i].type, &context));
        assert_int_equal(fake_count(sides[i].step), 2);
        assert_true(fake_addr_is(fake_last(sides[i].step)->resolve.addr, 1));
        assert_ptr_equal(context, fake_context(0));
    }
}

static void address_without_device_is_an_error(void **state) {
    (void)state;
    static const char *const listed[] = {
        "RDMA devices of this machine: fake0 fake1; 'rdma link' shows their network devices",
        "RDMA devices of this machine: fake0; 'rdma link' shows their network devices",
        "RDMA devices of this machine: none that libibverbs can use; 'rdma link' shows those",
    };
    for (size_t i = 0; i < LENGTH(sides); i++)
        for (size_t missing = 0; missing < LENGTH(listed); missing++) {
            struct ibv_context *context = fake_context(1);
            fake_device()->no_device = true;
            fake_device()->unlisted = (int)missing;
            WATCH(context);
            EXPECT_ERROR(rpma_utils_get_ibv_context("0.0.0.0", sides[i].type, &context),
                         RPMA_E_PROVIDER, "no device stands behind the address",
                         "no device stands behind the address", .calls = all_calls_of(i));
            assert_non_null(
                strstr(logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message, listed[missing]));
        }
}

// ---- on-demand paging ----------------------------------------------------------------------

static void odp_needs_reads_and_writes_on_connections(void **state) {
    (void)state;
    enum { READ = IBV_ODP_SUPPORT_READ, WRITE = IBV_ODP_SUPPORT_WRITE };
    static const struct {
        uint64_t general, rc;
        int capable;
    } cases[] = {
        {IBV_ODP_SUPPORT, READ | WRITE, 1},
        {IBV_ODP_SUPPORT, READ | WRITE | IBV_ODP_SUPPORT_SEND, 1},
        {IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT, READ | WRITE, 1},
        {IBV_ODP_SUPPORT, READ, 0},
        {IBV_ODP_SUPPORT, WRITE, 0},
        {IBV_ODP_SUPPORT, 0, 0},
        {IBV_ODP_SUPPORT_IMPLICIT, READ | WRITE, 0},
        {0, 0, 0},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        int capable = -1;
        fake_device()->odp_general = cases[i].general;
        fake_device()->odp_rc = cases[i].rc;
        MUST(rpma_utils_ibv_context_is_odp_capable(fake_context(0), &capable));
        EXPECT_CALLS("ibv_query_device_ex");
        assert_int_equal(capable, cases[i].capable);
    }
}

// ---- texts ---------------------------------------------------------------------------------

static void codes_have_texts(void **state) {
    (void)state;
    static const struct {
        int code;
        const char *text;
    } cases[] = {
        {0, "Success"},
        {RPMA_E_UNKNOWN, "Unknown error"},
        {RPMA_E_NOSUPP, "Not supported"},
        {RPMA_E_PROVIDER, "Provider error occurred"},
        {RPMA_E_NOMEM, "Out of memory"},
        {RPMA_E_INVAL, "Invalid argument"},
        {RPMA_E_NO_COMPLETION, "No next completion available"},
        {RPMA_E_NO_EVENT, "No next event available"},
        {RPMA_E_AGAIN, "Temporary error, try again"},
        {RPMA_E_SHARED_CHANNEL, "Completion channel is shared"},
        {RPMA_E_NOT_SHARED_CHNL, "Completion channel is not shared"},
        {1, "Unknown error"},
        {-1, "Unknown error"},
        {INT_MIN, "Unknown error"},
        {RPMA_E_NOT_SHARED_CHNL - 1, "Unknown error"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++)
        assert_string_equal(rpma_err_2str(cases[i].code), cases[i].text);
}

static void events_have_texts(void **state) {
    (void)state;
    static const struct {
        int event;
        const char *text;
    } cases[] = {
        {RPMA_CONN_UNDEFINED, "Undefined connection event"},
        {RPMA_CONN_ESTABLISHED, "Connection established"},
        {RPMA_CONN_CLOSED, "Connection closed"},
        {RPMA_CONN_LOST, "Connection lost"},
        {RPMA_CONN_REJECTED, "Connection rejected"},
        {RPMA_CONN_UNREACHABLE, "Connection unreachable"},
        {RPMA_CONN_UNREACHABLE + 1, "Unsupported connection event"},
        {RPMA_CONN_UNDEFINED - 1, "Unsupported connection event"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++)
        assert_string_equal(rpma_utils_conn_event_2str((enum rpma_conn_event)cases[i].event),
                            cases[i].text);
}

// The header, the project and the library have the same version.
static void version_is_that_of_the_project(void **state) {
    (void)state;
    char text[32];
    const uint32_t version = rpma_version();
    snprintf(text, sizeof(text), "%u.%u.%u", version >> 16, version >> 8 & 0xff,
             version & 0xff);
    assert_string_equal(text, PROJECT_VERSION);
    assert_int_equal(version, RPMA_VERSION);
    assert_true(RPMA_VERSION_NUMBER(1, 3, 255) < RPMA_VERSION_NUMBER(1, 4, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(address_leads_to_a_device),
        TEST(unknown_name_is_explained),
        TEST(every_address_is_tried),
        TEST(routes_with_a_source_are_tried),
        TEST(addresses_are_written_with_their_ports),
        TEST(address_without_device_is_an_error),
        TEST(odp_needs_reads_and_writes_on_connections),
        TEST(codes_have_texts),
        TEST(events_have_texts),
        TEST(version_is_that_of_the_project),
    };
    return UNIT_RUN("utils", tests);
}
