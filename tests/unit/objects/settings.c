// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// settings.c -- functions that behave alike (setters and getters, failed allocations, failed
// deletions), found in a table of the functions of the header; settings of the device and of
// the connection manager, on both sides of a connection

#include "arguments.h"

#include <limits.h>
#include <stdio.h>

// ---- setters and getters -------------------------------------------------------------------

static const struct setting {
    const char *object; // of rpma_<object>_set_<name>()
    const char *name;   // and rpma_<object>_get_<name>()
    size_t size;        // of the value
    uint64_t start;     // the documented default
    uint64_t values[4];
} settings[] = {
    {"conn_cfg", "timeout", sizeof(int), 1000, {0, 1, 1000, INT_MAX}},
    {"conn_cfg", "cq_size", sizeof(uint32_t), 10, {0, 1, 10, UINT32_MAX}},
    {"conn_cfg", "rcq_size", sizeof(uint32_t), 0, {0, 1, 10, UINT32_MAX}},
    {"conn_cfg", "sq_size", sizeof(uint32_t), 10, {0, 1, 10, UINT32_MAX}},
    {"conn_cfg", "rq_size", sizeof(uint32_t), 10, {0, 1, 10, UINT32_MAX}},
    {"conn_cfg", "max_sge", sizeof(uint32_t), 1, {1, 2, 10, UINT32_MAX}},
    {"conn_cfg", "ack_timeout", sizeof(int), 0, {0, 1, 1000, 8796093}},
    {"conn_cfg", "retry_count", sizeof(uint32_t), 7, {0, 1, 6, 7}},
    {"conn_cfg", "rnr_retry_count", sizeof(uint32_t), 7, {0, 1, 6, 7}},
    {"conn_cfg", "rnr_timer", sizeof(int), 0, {0, 1, 10, 655}},
    {"conn_cfg", "source_port", sizeof(uint32_t), 0, {0, 1, 7300, UINT16_MAX}},
    {"conn_cfg", "tos", sizeof(uint8_t), 0, {0, 1, 0x68, UINT8_MAX}},
    {"conn_cfg", "flush_mode", sizeof(uint32_t), RPMA_FLUSH_MODE_AUTO, {0, 1, 2, 0}},
    {"conn_cfg", "inline_size", sizeof(uint32_t), 8, {0, 8, 64, UINT32_MAX}},
    {"conn_cfg", "compl_channel", sizeof(bool), false, {true, false, true, false}},
    {"conn_cfg", "srq", sizeof(void *), 0, {0x1000, 0, 0x2000, 0}}, // borrowed, not read
    {"conn_cfg", "cq", sizeof(void *), 0, {0x1000, 0, 0x2000, 0}},
    {"conn_cfg", "rcq", sizeof(void *), 0, {0x1000, 0, 0x2000, 0}},
    {"ep_cfg", "backlog", sizeof(uint32_t), 0, {0, 1, 1024, INT_MAX}},
    {"ep_cfg", "ipv6_only", sizeof(bool), false, {true, false, true, false}},
    {"cq_cfg", "size", sizeof(uint32_t), 100, {0, 1, 10, UINT32_MAX}},
    {"cq_cfg", "comp_vector", sizeof(uint32_t), 0, {0, 1, 10, UINT32_MAX}},
    {"srq_cfg", "rq_size", sizeof(uint32_t), 100, {0, 1, 10, UINT32_MAX}},
    {"srq_cfg", "rcq_size", sizeof(uint32_t), 100, {0, 1, 10, UINT32_MAX}},
    {"srq_cfg", "max_sge", sizeof(uint32_t), 1, {1, 2, 10, UINT32_MAX}},
    {"peer_cfg", "direct_write_to_pmem", sizeof(bool), false, {true, false, true, false}},
};

static const struct call_by_name *call_of(const struct setting *s, const char *verb) {
    char name[96];
    snprintf(name, sizeof(name), "rpma_%s_%s_%s", s->object, verb, s->name);
    const struct call_by_name *call = call_named(name);
    if (!call)
        fail_msg("librpma.h declares no %s", name);
    return call;
}

// Creates or deletes a configuration.
static void call_with(const char *object, const char *verb, uintptr_t *cfg) {
    char name[96];
    snprintf(name, sizeof(name), "rpma_%s_%s", object, verb);
    MUST(call_named(name)->call((const uintptr_t[]){(uintptr_t)cfg}));
}

static void expect_setting(const struct setting *s, uintptr_t cfg, uint64_t value) {
    unsigned char got[16], expected[16]; // compared as bytes
    memset(got, 0x5a, sizeof(got));
    memset(expected, 0x5a, sizeof(expected));
    const uint8_t as_u8 = (uint8_t)value; // also a bool
    const uint32_t as_u32 = (uint32_t)value;
    const void *as_pointer = (const void *)(uintptr_t)value;
    memcpy(expected,
           s->size == sizeof(uint8_t)  ? (const void *)&as_u8
           : s->size == sizeof(void *) ? (const void *)&as_pointer
                                       : (const void *)&as_u32,
           s->size);
    const uintptr_t words[] = {cfg, (uintptr_t)got};
    MUST(call_of(s, "get")->call(words));
    assert_memory_equal(got, expected, sizeof(got));
}

// Expects this value of one setting, and the defaults of all others.
static void expect_only(const struct setting *one, uintptr_t cfg, uint64_t value) {
    for (const struct setting *s = settings; s < settings + LENGTH(settings); s++)
        if (strcmp(s->object, one->object) == 0)
            expect_setting(s, cfg, s == one ? value : s->start);
}

TEST_THAT(each_getter_returns_the_set_value) {
    for (const struct setting *s = settings; s < settings + LENGTH(settings); s++) {
        uintptr_t cfg = 0;
        call_with(s->object, "new", &cfg);
        expect_only(s, cfg, s->start);
        for (size_t i = 0; i < LENGTH(s->values); i++) {
            const uintptr_t words[] = {cfg, (uintptr_t)s->values[i]};
            MUST(call_of(s, "set")->call(words));
            EXPECT_CALLS("");
            expect_only(s, cfg, s->values[i]);
        }
        call_with(s->object, "delete", &cfg);
        assert_int_equal(cfg, 0);
    }
}

// ---- failed allocations and deletions ------------------------------------------------------

TEST_THAT(failed_deletion_is_logged) {
    static const char *const ends[] = {"_delete", "_dereg", "_shutdown"};
    unsigned found = 0;
    for (const struct call_by_name *call = calls_by_name; call->name; call++)
        for (size_t i = 0; i < LENGTH(ends); i++) {
            const size_t length = strlen(call->name), end = strlen(ends[i]);
            if (length < end || strcmp(call->name + length - end, ends[i]) != 0)
                continue;
            void *handle = NULL;
            const uintptr_t words[] = {(uintptr_t)&handle};
            MUST(call->call(words));
            EXPECT_CALLS("");
            assert_null(handle);
            assert_string_equal(logged_text(), "");
            found++;
        }
    assert_int_equal(found, 14);
}

// ---- the descriptor of a peer configuration ------------------------------------------------

// The four bytes with capabilities; the meaning of all others is the same in every release.
static const struct {
    unsigned byte;
    const char *flush, *atomic_write;
} capability_bytes[] = {
    {0xa1, "no", "no"},
    {0xa3, "yes", "no"},
    {0xa5, "no", "yes"},
    {0xa7, "yes", "yes"},
};

TEST_THAT(peer_cfg_survives_its_descriptor) {
    for (unsigned byte = 0; byte <= UINT8_MAX; byte++) {
        const char *flush = "not advertised", *atomic_write = "not advertised";
        unsigned char expected = byte != 0;
        char line[128];
        for (size_t i = 0; i < LENGTH(capability_bytes); i++)
            if (capability_bytes[i].byte == byte) {
                flush = capability_bytes[i].flush;
                atomic_write = capability_bytes[i].atomic_write;
                expected = (unsigned char)byte;
            }
        snprintf(line, sizeof(line),
                 "direct write to PMem: %s, native flush: %s, native atomic write: %s",
                 byte != 0 ? "yes" : "no", flush, atomic_write);
        const unsigned char received[3] = {(unsigned char)byte, 0xff, 0xff};
        unsigned char desc[2] = {0x5a, 0x5a};
        struct rpma_peer_cfg *pcfg = NULL;
        size_t size = 0;
        bool supported = byte == 0;
        logged_forget();
        MUST(rpma_peer_cfg_from_descriptor(received, 1 + byte % 3, &pcfg));
        assert_string_equal(logged_line(RPMA_LOG_LEVEL_INFO, 0)->message, line);
        MUST(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &supported));
        assert_int_equal(supported, byte != 0);
        MUST(rpma_peer_cfg_get_descriptor_size(pcfg, &size));
        assert_int_equal(size, 1);
        MUST(rpma_peer_cfg_get_descriptor(pcfg, desc));
        assert_int_equal(desc[0], expected);
        assert_int_equal(desc[1], 0x5a);
        // Without direct write to PMem the byte is 0 in every release.
        MUST(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, false));
        MUST(rpma_peer_cfg_get_descriptor(pcfg, desc));
        assert_int_equal(desc[0], 0);
        MUST(rpma_peer_cfg_set_direct_write_to_pmem(pcfg, true));
        MUST(rpma_peer_cfg_get_descriptor(pcfg, desc));
        assert_int_equal(desc[0], expected == 0 ? 1 : expected);
        MUST(rpma_peer_cfg_delete(&pcfg));
    }
}

static const struct shape sides[] = {{.name = "outgoing"},
                                     {.name = "incoming", .incoming = true}};

static void set_value(const char *name, uint32_t value) {
    void *const cfg = strstr(name, "_srq_") ? (void *)w.h.srq_cfg : (void *)w.h.cfg;
    MUST(call_named(name)->call((const uintptr_t[]){(uintptr_t)cfg, value}));
}

// A fixture with a configuration; for the passive side, with a pending request.
static void begin_side(const struct shape *side) {
    fixture_peer(&w);
    fixture_cfg(&w, side);
    MUST(rpma_srq_cfg_new(&w.h.srq_cfg));
    if (!side->incoming)
        return;
    fixture_listen(&w);
    fake_cm_event(fixture_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
}

static int new_request(bool incoming) {
    return incoming
               ? rpma_ep_next_conn_req(w.h.ep, w.h.cfg, &w.h.req)
               : rpma_conn_req_new(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, w.h.cfg, &w.h.req);
}

// ---- requested sizes -----------------------------------------------------------------------

// The value of the last option, which must have this name; NOT_SET if there is none.
enum { NOT_SET = UINT16_MAX };
static uint32_t option(int name) {
    const struct fake_call *call = fake_last("rdma_set_option");
    if (!call)
        return NOT_SET;
    assert_int_equal(call->option.level, RDMA_OPTION_ID);
    assert_int_equal(call->option.name, name);
    assert_int_equal(call->option.length, 1);
    return call->option.value;
}

static uint32_t ack_timeout(void) {
    return option(RDMA_OPTION_ID_ACK_TIMEOUT);
}
static uint32_t tos(void) {
    return option(RDMA_OPTION_ID_TOS);
}
static uint32_t inline_data(void) {
    return fake_last("rdma_create_qp_ex")->qp.cap.max_inline_data;
}
static uint32_t sges(void) {
    const struct ibv_qp_cap *cap = &fake_last("rdma_create_qp_ex")->qp.cap;
    assert_int_equal(cap->max_send_sge, cap->max_recv_sge);
    assert_int_equal(cap->max_inline_data, 8);
    return cap->max_send_sge;
}

// InfiniBand Architecture Specification 1.4, local ACK timeout: 4.096 us * 2^n. The values are
// those at which n changes: 2^n * 4.096 us in whole milliseconds, and one more. The passive
// side uses the type of service of the request.
TEST_THAT(settings_are_set_in_the_device) {
    enum { MAX_PAIRS = 20, END = 77777 };
    static const struct {
        const char *setting;
        uint32_t (*asked)(void);
        bool of_both;                 // set on both sides; otherwise on the active side only
        uint32_t pairs[MAX_PAIRS][2]; // value, and what the device gets
    } cases[] = {
        {"rpma_conn_cfg_set_ack_timeout",
         ack_timeout,
         true,
         {{0, NOT_SET}, {1, 8},        {2, 9},        {3, 10},       {4, 10},
          {5, 11},      {8, 11},       {9, 12},       {100, 15},     {134, 15},
          {135, 16},    {268, 16},     {269, 17},     {1073, 18},    {1074, 19},
          {60000, 24},  {4398046, 30}, {4398047, 31}, {8796093, 31}, {END}}},
        {"rpma_conn_cfg_set_tos",
         tos,
         false,
         {{0, NOT_SET}, {0x68, 0x68}, {0xff, 0xff}, {END}}},
        {"rpma_conn_cfg_set_inline_size",
         inline_data,
         true,
         {{0, 8}, {7, 8}, {8, 8}, {9, 9}, {512, 512}, {END}}},
        {"rpma_conn_cfg_set_max_sge",
         sges,
         true,
         {{1, 1}, {2, 2}, {FAKE_MAX_SRQ_SGE, FAKE_MAX_SRQ_SGE}, {END}}},
    };
    for (size_t i = 0; i < LENGTH(cases); i++)
        for (int k = 0; cases[i].pairs[k / 2][0] != END; k++) {
            const struct shape *side = &sides[k % 2];
            const uint32_t *pair = cases[i].pairs[k / 2];
            const uint32_t wanted = side->incoming && !cases[i].of_both ? NOT_SET : pair[1];
            const bool is_option = cases[i].asked == ack_timeout || cases[i].asked == tos;
            fixture_reset();
            begin_side(side);
            set_value(cases[i].setting, pair[0]);
            MUST(new_request(side->incoming));
            assert_int_equal(cases[i].asked(), wanted);
            assert_int_equal(fake_count("rdma_set_option"), is_option && wanted != NOT_SET);
        }
}

// InfiniBand Architecture Specification 1.4, RNR NAK timer field encoding: the values are the
// milliseconds at which the code changes.
TEST_THAT(rnr_timer_is_set_in_the_queue_pair) {
    static const uint32_t codes[][2] = {
        {1, 14},   {2, 16},   {3, 17},   {4, 18},   {5, 18},   {6, 19},   {7, 19},
        {8, 20},   {10, 20},  {11, 21},  {15, 21},  {16, 22},  {20, 22},  {21, 23},
        {30, 23},  {31, 24},  {40, 24},  {41, 25},  {61, 25},  {62, 26},  {81, 26},
        {82, 27},  {122, 27}, {123, 28}, {163, 28}, {164, 29}, {245, 29}, {246, 30},
        {327, 30}, {328, 31}, {491, 31}, {492, 0},  {655, 0}};
    enum { UNSET = LENGTH(codes), IWARP, FAILS, END };
    for (size_t i = 0; i < 2 * END; i++) {
        const bool incoming = i % 2;
        const size_t n = i / 2;
        fixture_reset();
        if (n == IWARP)
            fake_profile()->transport = SIM_IWARP;
        begin_side(&sides[incoming]);
        if (n != UNSET)
            set_value("rpma_conn_cfg_set_rnr_timer", n < UNSET ? codes[n][0] : 2);
        MUST(new_request(incoming));
        if (n == FAILS)
            fake_fail("ibv_modify_qp", 1, ENOMEM);
        MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
        assert_int_equal(fake_count("ibv_modify_qp"), incoming && n != UNSET && n != IWARP);
        const struct ibv_qp_attr *asked =
            incoming && n < UNSET ? &fake_last("ibv_modify_qp")->modify_qp.attr : NULL;
        if (asked)
            assert_int_equal(asked->min_rnr_timer, codes[n][1]);
        if (incoming && n == FAILS)
            assert_non_null(strstr(logged_line(RPMA_LOG_LEVEL_WARNING, 0)->message,
                                   "ibv_modify_qp(min_rnr_timer=16 for 2 ms) failed: Cannot"));
        unit_begin();
        fake_cm_event(fixture_event_fd(&w), RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
        MUST(rpma_conn_next_event(w.h.conn, &w.h.event));
        assert_int_equal(w.h.event, RPMA_CONN_ESTABLISHED);
        assert_int_equal(fake_count("ibv_modify_qp"), !incoming && n != UNSET && n != IWARP);
        if (!incoming && n < UNSET)
            assert_int_equal(fake_last("ibv_modify_qp")->modify_qp.attr.min_rnr_timer,
                             codes[n][1]);
        if (!incoming && n == FAILS)
            assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 1);
    }
}

// Options belong to a CM ID, and each route and each address has its own ID.
TEST_THAT(every_address_gets_the_settings) {
    begin_side(&sides[0]);
    fake_device()->addresses = 3;
    set_value("rpma_conn_cfg_set_tos", 0xff);
    set_value("rpma_conn_cfg_set_ack_timeout", 1);
    fake_fail("rdma_resolve_addr", 1, ENETUNREACH);
    fake_fail("rdma_create_qp_ex", 1, ENOMEM);
    MUST(new_request(false));
    assert_int_equal(fake_count("rdma_set_option"), 3 + 1);
    assert_ptr_equal(fake_last("rdma_set_option")->object,
                     fake_last("rdma_resolve_route")->object);
}

// ../properties/failure_lines.tsv has the values above these limits.
TEST_THAT(sges_reach_the_limit_of_device_and_library) {
    static const int of_device[] = {1, 6, 200};
    for (size_t i = 0; i < LENGTH(of_device); i++) {
        const uint32_t limit = of_device[i] > 128 ? 128 : (uint32_t)of_device[i];
        fixture_reset();
        fake_profile()->attr.max_sge = fake_profile()->attr.max_srq_sge = of_device[i];
        fake_profile()->max_send_sge = fake_profile()->max_recv_sge = (uint32_t)of_device[i];
        begin_side(&sides[0]);
        set_value("rpma_conn_cfg_set_max_sge", limit);
        set_value("rpma_srq_cfg_set_max_sge", limit);
        MUST(rpma_srq_new(w.h.peer, w.h.srq_cfg, &w.h.srq));
        assert_int_equal(fake_last("ibv_create_srq")->srq.attr.max_sge, limit);
        MUST(new_request(false));
        assert_int_equal(fake_last("rdma_create_qp_ex")->qp.cap.max_send_sge, limit);
    }
}
