// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// address.c -- names, their addresses and routes, and the devices of the addresses

#include "arguments.h"
#include "logged.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>

// ---- all functions that take an address ----------------------------------------------------

static const struct user {
    const char *name, *service;
    bool is_local;        // it binds an address; otherwise it resolves one
    const char *steps[5]; // each may fail for one address
} users[] = {
    {"rpma_ep_listen", FIXTURE_PORT, true, {"rdma_create_id", "rdma_bind_addr", "rdma_listen"}},
    {"rpma_conn_req_new", FIXTURE_PORT, false,
     .steps = {"rdma_getaddrinfo", "rdma_create_id", "rdma_resolve_addr", "rdma_resolve_route",
               "rdma_create_qp_ex"}},
    {"rpma_utils_get_ibv_context", "", true, {"rdma_create_id", "rdma_bind_addr"}},
    {"rpma_utils_get_ibv_context", "", false,
     .steps = {"rdma_getaddrinfo", "rdma_create_id", "rdma_resolve_addr"}},
};

// The call that uses the address.
static const char *step_of(const struct user *user) {
    return user->is_local ? "rdma_bind_addr" : "rdma_resolve_addr";
}

static int call_user(const struct user *user) {
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
    unit_must(call_user(user), user->name, __FILE__, __LINE__);
}

// getaddrinfo() codes are not errno values.
static void expect_failure(const struct user *user, const char *cause, int error,
                           const char *logs) {
    WATCH(w.h);
    unit_expect_error(call_user(user), user->name,
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
            fixture_peer(&w);
            fake_fail(user->steps[i], 1, ENETUNREACH);
            fake_fail(user->steps[i], 2, EHOSTUNREACH);
            must(user);
            fixture_expect_name(FIXTURE_ADDRESS, user->service,
                                user->is_local ? AI_PASSIVE : 0);
            assert_int_equal(fake_count(user->steps[i]), 3);
            const struct fake_call *step = fake_last(step_of(user));
            assert_true(fake_addr_is(step->resolve.addr, 2));
            assert_null(step->resolve.source);
            assert_int_equal(step->resolve.timeout_ms, user->is_local ? 0 : 1000);
            assert_true(!w.h.context || w.h.context == fake_context(0));
            assert_int_equal(fake_last("rdma_create_id")->channel != NULL, w.h.ep != NULL);
            fixture_delete(&w);

            fixture_peer(&w);
            fake_faults_off();
            fake_fail_from(user->steps[i], 1, ETIMEDOUT);
            snprintf(cause, sizeof(cause), "%s()", user->steps[i]);
            expect_failure(user, cause, ETIMEDOUT, NULL);
            assert_int_equal(fake_count(user->steps[i]), 3);
            fake_faults_off();
            fixture_delete(&w);
        }
}

// A name may have many addresses, and IBACM may return a route with a source to each of them.
TEST_THAT(every_route_is_tried_before_its_address) {
    for (const struct user *user = users; user < users + LENGTH(users); user++) {
        if (user->is_local)
            continue;
        fixture_reset();
        fake_device()->addresses = 20;
        fake_device()->routes = 1;
        fixture_peer(&w);
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

        fixture_reset();
        fake_device()->routes = 1;
        fixture_peer(&w);
        fake_fail("rdma_resolve_addr", 1, ENETUNREACH);
        must(user); // over the second route of the only address
        assert_int_equal(fake_count("rdma_resolve_addr"), 2);
    }
}

// ---- ports ---------------------------------------------------------------------------------

static const struct {
    const char *text;
    const char *cause; // the cause of the rejection; NULL: a valid port
    int port;          // -1: a service name
} ports[] = {
    {"7204", NULL, 7204},
    {"0", NULL, 0},
    {"65535", NULL, 65535},
    {" 7204", NULL, 7204},
    {"+80", NULL, 80},
    {"-0", NULL, 0},
    {"00000000000000000000065535", NULL, 65535},
    {"ssh", NULL, -1},
    {"7204 ", NULL, -1},
    {"0x1c24", NULL, -1},
    {"65536x", NULL, -1},
    {"-", NULL, -1},
    {" ", NULL, -1},
    {"", "port is empty", 0},
    {"65536", "port is a number outside 0 to 65535", 0},
    {"70000", "port is a number outside 0 to 65535", 0},
    {"0070000", "port is a number outside 0 to 65535", 0},
    {" +70000", "port is a number outside 0 to 65535", 0},
    {"-1", "port is a number outside 0 to 65535", 0},
    {"-65536", "port is a number outside 0 to 65535", 0},
    {"4294967296", "port is a number outside 0 to 65535", 0},
    {"18446744073709558820", "port is a number outside 0 to 65535", 0},
    {"-18446744073709544412", "port is a number outside 0 to 65535", 0},
    {"99999999999999999999999999999999999999999999", "port is a number outside 0 to 65535", 0},
};

// getaddrinfo() keeps 16 bits of every number.
TEST_THAT(port_outside_16_bits_is_refused) {
    static const char *const functions[] = {"rpma_ep_listen", "rpma_ep_listen_with",
                                            "rpma_conn_req_new", "rpma_conn_req_start"};
    static struct arguments a;
    for (size_t n = 0; n < LENGTH(functions) * LENGTH(ports); n++) {
        const char *function = functions[n / LENGTH(ports)];
        const size_t i = n % LENGTH(ports);
        char quoted[64];
        snprintf(quoted, sizeof(quoted), "port is \"%s\"; possible: ", ports[i].text);
        fixture_reset();
        fixture_peer(&w);
        arguments_good(&a, function, &w);
        (void)arguments_set(&a, "cfg", 0);
        (void)arguments_set(&a, "port", (uintptr_t)ports[i].text);
        unit_begin();
        if (ports[i].cause) {
            errno = EILSEQ;
            const int ret = arguments_call(&a);
            assert_int_equal(errno, EILSEQ); // strtoll() sets it for a number out of its range
            unit_expect_error(ret, function,
                              &(const struct expected_error){RPMA_E_INVAL, "port is empty",
                                                             ports[i].cause, .logs = quoted},
                              __FILE__, __LINE__);
            continue;
        }
        unit_must(arguments_call(&a), function, __FILE__, __LINE__);
        const struct fake_call *last =
            fake_last(strstr(function, "listen") ? "rdma_bind_addr" : "rdma_resolve_addr");
        assert_string_equal(fake_last("getaddrinfo")->getaddrinfo.service, ports[i].text);
        if (ports[i].port >= 0)
            assert_int_equal(
                ntohs(((const struct sockaddr_in *)&last->resolve.addr_copy)->sin_port),
                ports[i].port);
    }
}

static const struct untrusted {
    const char *text, *shown;
} untrusted_texts[] = {
    {"two\nlines\r\t\x1b[2J", "two\\nlines\\r\\t\\x1b[2J"},
    {"\x7f\xc2\x9b\xff\xc3", "\\x7f\\xc2\\x9b\\xff\\xc3"},
    {"\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6", "\\xe2\\x80\\xa8\\xe2\\x80\\xae\\xe2\\x81\\xa6"},
    {"\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xf8",
     "\\xc0\\xaf\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80\\xf8"},
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc2\xa0",
     "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc2\xa0"},
    {"%s%n a\\nb", "%s%n a\\\\nb"},
    {NULL, "xxxx"}, // 5000 characters
    {NULL, "\\x1b\\x1b"},
};

static int call_with_text(const char *function, const char *addr, const char *port, int type) {
    static struct arguments a;
    arguments_good(&a, function, &w);
    (void)arguments_set(&a, "cfg", 0);
    (void)arguments_set(&a, "type", (uintptr_t)type);
    (void)arguments_set(&a, "addr", (uintptr_t)addr);
    (void)arguments_set(&a, "port", (uintptr_t)port);
    if (strcmp(function, "rpma_conn_cfg_set_source_addr") == 0)
        (void)arguments_set(&a, "cfg", (uintptr_t)w.h.cfg);
    unit_begin();
    return arguments_call(&a);
}

static void expect_one_line(const char *function, const char *shown, const char *reason) {
    const struct logged_line *line = logged_line(RPMA_LOG_LEVEL_ERROR, 0);
    if (!line || logged_count(RPMA_LOG_LEVEL_ERROR) != 1 ||
        strcmp(line->function, function) != 0 || !strstr(line->message, shown) ||
        !strstr(line->message, reason) || strlen(line->message) > 900)
        fail_msg("%s: expected \"%s\" and \"%s\" in one line: %s", function, shown, reason,
                 logged_text());
    for (const char *at = line->message; *at; at++)
        assert_false((unsigned char)*at < ' ' || *at == 0x7f);
}

// Names and ports are untrusted: they are read from command lines, files and other machines.
TEST_THAT(untrusted_text_is_one_bounded_line_with_the_reason) {
    static char longest[2][5001];
    static const struct {
        const char *function;
        int type;
        bool has_port;
        const char *reason; // NULL: the reason of the failed name lookup
    } calls[] = {
        {"rpma_ep_listen", 0, true, NULL},
        {"rpma_ep_listen_with", 0, true, NULL},
        {"rpma_conn_req_new", 0, true, NULL},
        {"rpma_conn_req_start", 0, true, NULL},
        {"rpma_utils_get_ibv_context", RPMA_UTIL_IBV_CONTEXT_LOCAL, false, NULL},
        {"rpma_utils_get_ibv_context", RPMA_UTIL_IBV_CONTEXT_REMOTE, false, NULL},
        {"rpma_conn_cfg_set_source_addr", 0, false, "possible: a numeric IPv4"},
    };
    memset(longest[0], 'x', sizeof(longest[0]) - 1);
    memset(longest[1], '\x1b', sizeof(longest[1]) - 1);
    for (size_t i = 0; i < LENGTH(untrusted_texts) * LENGTH(calls); i++) {
        const size_t n = i / LENGTH(calls), c = i % LENGTH(calls);
        const char *text = untrusted_texts[n].text
                               ? untrusted_texts[n].text
                               : longest[untrusted_texts[n].shown[0] == '\\'];
        fixture_reset();
        fixture_peer(&w);
        MUST(rpma_conn_cfg_new(&w.h.cfg));
        fake_device()->gai_error = EAI_NONAME;
        assert_int_not_equal(
            call_with_text(calls[c].function, text, FIXTURE_PORT, calls[c].type), 0);
        expect_one_line(calls[c].function, untrusted_texts[n].shown,
                        calls[c].reason ? calls[c].reason : gai_strerror(EAI_NONAME));
        if (!calls[c].has_port)
            continue;
        fake_device()->gai_error = EAI_SERVICE;
        assert_int_not_equal(call_with_text(calls[c].function, text, text, calls[c].type), 0);
        expect_one_line(calls[c].function, untrusted_texts[n].shown, gai_strerror(EAI_SERVICE));
    }
}

// ---- routes, devices and addresses ---------------------------------------------------------

static int port_of(const struct sockaddr_storage *addr) {
    return ntohs(((const struct sockaddr_in *)(const void *)addr)->sin_port);
}

// The addresses of the request become those of the connection.
static void expect_addresses(const struct sockaddr_storage *local, int peer) {
    struct sockaddr_storage addr[2][2];
    memset(addr, 0x5a, sizeof(addr));
    MUST(rpma_conn_req_get_local_addr(w.h.req, &addr[0][0]));
    MUST(rpma_conn_req_get_peer_addr(w.h.req, &addr[0][1]));
    EXPECT_CALLS("");
    MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
    unit_begin();
    MUST(rpma_conn_get_local_addr(w.h.conn, &addr[1][0]));
    MUST(rpma_conn_get_peer_addr(w.h.conn, &addr[1][1]));
    EXPECT_CALLS("");
    assert_memory_equal(addr[0], addr[1], sizeof(addr[0]));
    assert_true(fake_addr_is((const struct sockaddr *)&addr[0][1], peer));
    assert_memory_equal(&addr[0][0], local, sizeof(*local));
    MUST(rpma_conn_delete(&w.h.conn));
}

// IPv4 and IPv6. The peer address is that of the client, or the resolved one; the local
// address is that of this side.
TEST_THAT(both_sides_report_their_addresses) {
    static const char *const sources[] = {"127.0.0.7", "fd00::7"};
    for (int number = 0; number < 4; number++) {
        struct sockaddr_storage local;
        fixture_reset();
        fake_device()->client = number;
        fixture_peer(&w);
        for (int before = 0; before < number; before++)
            fake_fail("rdma_resolve_route", (unsigned)before + 1, ENETUNREACH);
        MUST(rpma_conn_cfg_new(&w.h.cfg));
        MUST(rpma_conn_cfg_set_source_addr(w.h.cfg, sources[number % 2]));
        MUST(rpma_conn_cfg_set_source_port(w.h.cfg, 7300));
        MUST(rpma_conn_cfg_get_source_addr(w.h.cfg, &local));
        assert_int_equal(port_of(&local), 7300);
        fake_device()->addresses = 8; // every second address has the family of the source
        MUST(rpma_conn_req_new(w.h.peer, "many", FIXTURE_PORT, w.h.cfg, &w.h.req));
        expect_addresses(&local, 2 * number + number % 2);
        fixture_listen(&w);
        MUST(rpma_ep_get_addr(w.h.ep, &local));
        fake_cm_event(fixture_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
        MUST(rpma_ep_next_incoming(w.h.ep, &w.h.req));
        MUST(rpma_conn_req_setup(w.h.req, NULL));
        expect_addresses(&local, number);
    }
}

TEST_THAT(endpoint_reports_the_port_chosen_by_the_kernel) {
    static const struct {
        const char *asked;
        int port; // 0: any port but 0
    } cases[] = {{"7204", 7204}, {"0", 0}, {"-0", 0}};
    for (int family = 0; family < 2; family++)
        for (size_t i = 0; i < LENGTH(cases); i++) {
            struct sockaddr_storage addr;
            fixture_reset();
            fixture_peer(&w);
            fake_device()->addresses = 2;
            if (family == 1)
                fake_fail("rdma_bind_addr", 1, EADDRNOTAVAIL);
            memset(&addr, 0x5a, sizeof(addr));
            MUST(rpma_ep_listen(w.h.peer, "many", cases[i].asked, &w.h.ep));
            const struct logged_line line = *logged_line(RPMA_LOG_LEVEL_NOTICE, 0);
            unit_begin();
            MUST(rpma_ep_get_addr(w.h.ep, &addr));
            EXPECT_CALLS("");
            assert_true(fake_addr_is((const struct sockaddr *)&addr, family));
            char logged[64];
            snprintf(logged, sizeof(logged), "listening on %s:%d",
                     family ? "[::2]" : "127.0.0.1", port_of(&addr));
            assert_string_equal(line.message, logged);
            if (cases[i].port)
                assert_int_equal(port_of(&addr), cases[i].port);
            else
                assert_int_not_equal(port_of(&addr), 0);
        }
}
