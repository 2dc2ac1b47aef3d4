// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// settings_device.c -- settings that go to the device or to the connection manager: what is
// asked for, on both sides of a connection, and what is refused where the device has less

#include "arguments.h"

static const struct shape sides[] = {{.name = "outgoing"},
                                     {.name = "incoming", .incoming = true}};

static void set(const char *name, uint32_t value) {
    void *const cfg = strstr(name, "_srq_") ? (void *)w.h.srq_cfg : (void *)w.h.cfg;
    MUST(call_named(name)->call((const uintptr_t[]){(uintptr_t)cfg, value}));
}

// A world with a configuration; an incoming request is on its way.
static void begin(const struct shape *side) {
    world_peer(&w);
    world_cfg(&w, side);
    MUST(rpma_srq_cfg_new(&w.h.srq_cfg));
    if (!side->incoming)
        return;
    world_listen(&w);
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
}

static int new_request(bool incoming) {
    return incoming ? rpma_ep_next_conn_req(w.h.ep, w.h.cfg, &w.h.req)
                    : rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req);
}

// ---- what is asked for ---------------------------------------------------------------------

// The last option of the ID with this name; NOT_SET when nothing was set.
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
// those at which n changes: 2^n * 4.096 us in whole milliseconds, and one more. The accepting
// side takes over the type of service of the request.
TEST_THAT(settings_reach_the_device) {
    enum { MOST = 20, END = 77777 };
    static const struct {
        const char *setting;
        uint32_t (*asked)(void);
        bool of_both;            // sides; otherwise nothing is asked of an incoming request
        uint32_t pairs[MOST][2]; // the value, and what is asked for
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
            world_anew();
            begin(side);
            set(cases[i].setting, pair[0]);
            MUST(new_request(side->incoming));
            assert_int_equal(cases[i].asked(), wanted);
            assert_int_equal(fake_count("rdma_set_option"), is_option && wanted != NOT_SET);
        }
}

// Options belong to an ID, and each route and each address has one of its own.
TEST_THAT(every_address_gets_the_settings) {
    begin(&sides[0]);
    fake_device()->addresses = 3;
    set("rpma_conn_cfg_set_tos", 0xff);
    set("rpma_conn_cfg_set_ack_timeout", 1);
    fake_fail("rdma_resolve_addr", 1, ENETUNREACH);
    fake_fail("rdma_create_qp_ex", 1, ENOMEM);
    MUST(new_request(false));
    assert_int_equal(fake_count("rdma_set_option"), 3 + 2);
    assert_ptr_equal(fake_last("rdma_set_option")->object,
                     fake_last("rdma_resolve_route")->object);
}

// ../promises/failure_lines.tsv has one more than each of these.
TEST_THAT(as_many_pieces_as_the_device_or_librpma_has) {
    static const int of_device[] = {1, 6, 200};
    for (size_t i = 0; i < LENGTH(of_device); i++) {
        const uint32_t most = of_device[i] > 128 ? 128 : (uint32_t)of_device[i];
        world_anew();
        fake_device()->max_sge = fake_device()->max_srq_sge = of_device[i];
        begin(&sides[0]);
        set("rpma_conn_cfg_set_max_sge", most);
        set("rpma_srq_cfg_set_max_sge", most);
        MUST(rpma_srq_new(w.h.peer, w.h.srq_cfg, &w.h.srq));
        assert_int_equal(fake_last("ibv_create_srq")->srq.attr.max_sge, most);
        MUST(new_request(false));
        assert_int_equal(fake_last("rdma_create_qp_ex")->qp.cap.max_send_sge, most);
    }
}
