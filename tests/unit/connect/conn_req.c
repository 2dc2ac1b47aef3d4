// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_req.c -- requests of all kinds, from their creation to the connection

#include "fixture.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

// Requests are created in one call or in steps.
enum kind { OUTGOING, INCOMING, OUTGOING_STEPS, INCOMING_STEPS, KINDS };

static void request_by(enum kind kind, const struct rpma_conn_cfg *cfg) {
    if (kind % 2) {
        fixture_listen(&w);
        fake_cm_event(fixture_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, "hello", 5);
    }
    if (kind == OUTGOING)
        MUST(rpma_conn_req_new(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, cfg, &w.h.req));
    else if (kind == INCOMING)
        MUST(rpma_ep_next_conn_req(w.h.ep, cfg, &w.h.req));
    else if (kind == OUTGOING_STEPS)
        MUST(rpma_conn_req_start(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, cfg, &w.h.req));
    else
        MUST(rpma_ep_next_incoming(w.h.ep, &w.h.req));
}

#define RESOLVED "rdma_getaddrinfo rdma_create_id rdma_resolve_addr rdma_resolve_route "
#define STARTED "rdma_create_event_channel rdma_create_id rdma_resolve_addr"
#define QUEUES "ibv_create_comp_channel ibv_create_cq ibv_req_notify_cq rdma_create_qp_ex"
#define OWN_CHANNEL "rdma_create_event_channel rdma_migrate_id"

static const struct calls {
    const char *request, *connect;
} calls[KINDS] = {
    {RESOLVED QUEUES " rdma_freeaddrinfo", OWN_CHANNEL " ibv_reg_mr rdma_connect"},
    {"rdma_get_cm_event " QUEUES " rdma_ack_cm_event " OWN_CHANNEL, "ibv_reg_mr rdma_accept"},
    {STARTED, "ibv_reg_mr rdma_connect"},
    {"rdma_get_cm_event rdma_ack_cm_event " OWN_CHANNEL, "ibv_reg_mr rdma_accept"},
};

static const struct settings {
    int timeout;
    uint32_t cq, rcq, sq, rq, retries, rnr_retries;
    uint8_t data; // bytes with the request or the reply
} defaults = {1000, 20, 0, 10, 10, 7, 7, 0}, others = {7, 11, 12, 13, 14, 3, 2, 56};

static void set_others(void) {
    MUST(rpma_conn_cfg_new(&w.h.cfg));
    MUST(rpma_conn_cfg_set_timeout(w.h.cfg, others.timeout));
    MUST(rpma_conn_cfg_set_cq_size(w.h.cfg, others.cq));
    MUST(rpma_conn_cfg_set_rcq_size(w.h.cfg, others.rcq));
    MUST(rpma_conn_cfg_set_sq_size(w.h.cfg, others.sq));
    MUST(rpma_conn_cfg_set_rq_size(w.h.cfg, others.rq));
    MUST(rpma_conn_cfg_set_retry_count(w.h.cfg, others.retries));
    MUST(rpma_conn_cfg_set_rnr_retry_count(w.h.cfg, others.rnr_retries));
}

static void expect_resolved(enum kind kind, const struct settings *s) {
    const struct fake_call *addr = fake_last("rdma_resolve_addr");
    fixture_expect_name(FIXTURE_ADDRESS, FIXTURE_PORT, 0);
    assert_true(fake_addr_is(addr->resolve.addr, 0));
    assert_null(addr->resolve.source);
    assert_int_equal(addr->resolve.timeout_ms, s->timeout);
    if (kind == OUTGOING_STEPS) { // uses the channel of its descriptor
        const struct rdma_event_channel *channel = fake_last("rdma_create_id")->channel;
        assert_int_equal(channel->fd, fixture_req_fd(&w));
        return;
    }
    const struct fake_call *route = fake_last("rdma_getaddrinfo");
    assert_string_equal(route->getaddrinfo.node, "");
    assert_int_equal(route->getaddrinfo.flags, 0);
    assert_int_equal(route->getaddrinfo.qp_type, IBV_QPT_RC);
    assert_int_equal(route->getaddrinfo.port_space, RDMA_PS_TCP);
    assert_null(fake_last("rdma_create_id")->channel);
    assert_int_equal(fake_last("rdma_resolve_route")->resolve.timeout_ms, s->timeout);
}

static void expect_queues(const struct settings *s) {
    for (unsigned i = 0; i < fake_count("ibv_create_cq"); i++) {
        const struct fake_call *cq = fake_nth("ibv_create_cq", i + 1);
        assert_int_equal(cq->create_cq.cqe, i ? s->rcq : s->cq);
        assert_int_equal(cq->create_cq.comp_vector, 0);
        assert_null(cq->create_cq.cq_context);
    }
    const struct ibv_qp_init_attr_ex *qp = &fake_last("rdma_create_qp_ex")->qp;
    assert_int_equal(qp->cap.max_send_wr, s->sq);
    assert_int_equal(qp->cap.max_recv_wr, s->rq);
    assert_int_equal(qp->cap.max_send_sge, 1);
    assert_int_equal(qp->cap.max_recv_sge, 1);
    assert_int_equal(qp->cap.max_inline_data, 8);
    assert_int_equal(qp->qp_type, IBV_QPT_RC);
    assert_int_equal(qp->sq_sig_all, 0);
    assert_int_equal(qp->comp_mask, IBV_QP_INIT_ATTR_PD);
    assert_null(qp->srq);
    assert_int_equal(qp->send_cq != qp->recv_cq, s->rcq != 0);
    assert_ptr_equal(qp->send_cq->channel, fake_nth("ibv_create_cq", 1)->create_cq.channel);
    assert_ptr_equal(qp->recv_cq->channel, fake_last("ibv_create_cq")->create_cq.channel);
}

// Settings that the manual calls unused have values here that no device grants.
static void set_rq_size(void) {
    MUST(rpma_conn_cfg_set_rq_size(w.h.cfg, UINT32_MAX));
}
static void set_cq_size(void) {
    MUST(rpma_conn_cfg_set_cq_size(w.h.cfg, UINT32_MAX));
}
static void set_rcq_size(void) {
    MUST(rpma_conn_cfg_set_rcq_size(w.h.cfg, UINT32_MAX));
}
static void set_client(void) {
    MUST(rpma_conn_cfg_set_timeout(w.h.cfg, INT_MAX));
    MUST(rpma_conn_cfg_set_tos(w.h.cfg, UINT8_MAX));
    MUST(rpma_conn_cfg_set_source_addr(w.h.cfg, "2001:db8::1"));
    MUST(rpma_conn_cfg_set_source_port(w.h.cfg, UINT16_MAX));
}

TEST_THAT(unused_settings_are_not_used) {
    static const struct {
        struct shape shape;
        void (*set)(void);
        bool of_server; // the claim is about the accepting side
    } cases[] = {{{.srq = true}, set_rq_size},
                 {{.srq = true, .srq_rcq_size = 4}, set_rq_size},
                 {{.srq = true, .srq_rcq_size = 4}, set_rcq_size},
                 {{.shared_cq = 8}, set_cq_size},
                 {{.shared_cq = 8, .srq = true}, set_cq_size},
                 {{.shared_rcq = 8}, set_rcq_size},
                 {{.shared_cq = 8, .shared_rcq = 8}, set_rcq_size},
                 {{0}, set_client, true}};
    for (size_t i = 0; i < 4 * LENGTH(cases); i++) {
        static char without[512];
        struct shape shape = cases[i / 4].shape;
        const bool is_set = i % 2;
        shape.incoming = i / 2 % 2;
        if (cases[i / 4].of_server && !shape.incoming)
            continue;
        fixture_reset();
        fixture_peer(&w);
        fixture_cfg(&w, &shape);
        if (is_set)
            cases[i / 4].set();
        fixture_make_req(&w, &shape);
        const struct ibv_qp_init_attr_ex *qp = &fake_last("rdma_create_qp_ex")->qp;
        assert_int_equal(qp->cap.max_recv_wr, shape.srq ? 0 : 10);
        assert_int_equal(qp->cap.max_recv_sge, shape.srq ? 0 : 1);
        if (is_set)
            EXPECT_CALLS(without);
        else
            snprintf(without, sizeof(without), "%s", fake_calls());
    }
}

static void expect_connected(enum kind kind, const struct settings *s, const void *data) {
    const struct fake_call *call = fake_last(kind % 2 ? "rdma_accept" : "rdma_connect");
    const struct rdma_conn_param *param = &call->connect.param;
    assert_int_equal(param->private_data_len, s->data);
    assert_memory_equal(call->connect.data, data, s->data);
    assert_int_equal(param->private_data != NULL, s->data != 0);
    assert_int_equal(param->responder_resources, RDMA_MAX_RESP_RES);
    assert_int_equal(param->initiator_depth, RDMA_MAX_INIT_DEPTH);
    assert_int_equal(param->flow_control, 1);
    assert_int_equal(param->retry_count, s->retries);
    assert_int_equal(param->rnr_retry_count, s->rnr_retries);
    assert_int_equal(fake_ids_on(fixture_event_fd(&w)), 1); // no event is lost
    if (kind % 2)
        assert_int_equal(fake_ids_on(fixture_ep_fd(&w)), 1); // only the listener
}

// The connection has the descriptor of its request, which does not use the configuration any
// more.
static void connect_by(enum kind kind, const struct settings *s) {
    struct rpma_conn_private_data received = {&w, 1}, data = {w.memory, s->data};
    int fd = -1;
    request_by(kind, w.h.cfg);
    if (s == &defaults)
        EXPECT_CALLS(calls[kind].request);
    const unsigned notices = logged_count(RPMA_LOG_LEVEL_NOTICE);
    assert_string_equal(logged_line(RPMA_LOG_LEVEL_NOTICE, notices - 1)->message,
                        kind % 2 ? "a connection request arrived"
                                 : "requesting a connection to " FIXTURE_ADDRESS
                                   ":" FIXTURE_PORT);
    if (kind % 2 == 0)
        expect_resolved(kind, s);
    if (kind >= OUTGOING_STEPS || (kind % 2 && s != &defaults)) {
        fd = fixture_req_fd(&w);
        assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    }
    if (kind >= OUTGOING_STEPS) {
        MUST(rpma_conn_req_resolve(w.h.req));
        MUST(rpma_conn_req_setup(w.h.req, w.h.cfg));
        if (s == &defaults)
            EXPECT_CALLS(QUEUES);
    }
    expect_queues(s);
    MUST(rpma_conn_req_get_private_data(w.h.req, &received));
    assert_int_equal(received.len, kind % 2 ? 56 : 0); // the whole message
    assert_int_equal(received.ptr != NULL, kind % 2);
    if (kind % 2)
        assert_memory_equal(received.ptr, "hello\0", 7);
    MUST(rpma_conn_req_recv(w.h.req, w.h.mr, 0, 8, NULL));
    if (w.h.cfg)
        MUST(rpma_conn_cfg_set_retry_count(w.h.cfg, 1));
    MUST(rpma_conn_cfg_delete(&w.h.cfg));
    MUST(rpma_conn_req_connect(&w.h.req, s->data ? &data : NULL, &w.h.conn));
    EXPECT_CALLS(calls[kind].connect);
    assert_null(w.h.req);
    expect_connected(kind, s, w.memory);
    assert_true(fd < 0 || fd == fixture_event_fd(&w));
    assert_int_equal((fcntl(fixture_event_fd(&w), F_GETFL) & O_NONBLOCK) != 0, fd >= 0);
    fake_cm_event(fixture_event_fd(&w), RDMA_CM_EVENT_ESTABLISHED, NULL, 0);
    MUST(rpma_conn_next_event(w.h.conn, &w.h.event));
    assert_int_equal(w.h.event, RPMA_CONN_ESTABLISHED);
}

TEST_THAT(each_request_function_applies_the_configuration) {
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (int with_others = 0; with_others < 2; with_others++) {
            fixture_reset();
            fixture_peer(&w);
            if (with_others)
                set_others();
            connect_by(kind, with_others ? &others : &defaults);
        }
}

static void expect_failed_setup(enum kind kind, const char *fails) {
    const struct shape shared = {.shared_cq = 8, .shared_rcq = 8};
    fixture_reset();
    fixture_peer(&w);
    fixture_cfg(&w, &shared);
    MUST(rpma_conn_cfg_set_ack_timeout(w.h.cfg, 500));
    MUST(rpma_conn_cfg_set_retry_count(w.h.cfg, 1));
    request_by(kind, NULL);
    MUST(rpma_conn_req_resolve(w.h.req));
    fake_fail(fails, 1, EIO);
    unit_begin();
    assert_int_equal(rpma_conn_req_setup(w.h.req, w.h.cfg), RPMA_E_PROVIDER);
}

// After the failure, the program can delete its queues and set up the request with others.
TEST_THAT(failed_setup_releases_everything) {
    for (enum kind kind = OUTGOING_STEPS; kind < KINDS; kind++) {
        expect_failed_setup(kind, "rdma_create_qp_ex");
        assert_int_equal(fake_count("rdma_set_option"), 0);
        expect_failed_setup(kind, "rdma_set_option");
        MUST(rpma_cq_delete(&w.h.shared_cq));
        MUST(rpma_cq_delete(&w.h.shared_rcq));
        MUST(rpma_conn_req_setup(w.h.req, NULL));
        EXPECT_CALLS(QUEUES);
        expect_queues(&defaults);
        MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
        const struct fake_call *call = fake_last(kind % 2 ? "rdma_accept" : "rdma_connect");
        assert_int_equal(call->connect.param.retry_count, defaults.retries);
    }
}

// A completion is lost if the CQ is full. A size that the program set is used unchanged.
// ../objects/cq_shared.c has the other queues.
TEST_THAT(new_sizes_the_cq_for_all_completions) {
    static const struct {
        uint32_t sq, rq, rcq, set; // 0: not set
        uint32_t cqe;
        uint32_t max_wr; // of the device; 0: unchanged
        int max_cqe;     // of the device; 0: unchanged
    } cases[] = {
        {.sq = 100, .cqe = 110},
        {.rq = 100, .cqe = 110},
        {.sq = 1, .rq = 1, .cqe = 10},
        {.sq = 100, .rcq = 5, .cqe = 100},
        {.sq = 1000, .rq = 1000, .set = 10, .cqe = 10},
        {.sq = 20000, .rq = 20000, .cqe = 32767}, // the limit of the device
        {.sq = UINT32_MAX, .rq = 10, .cqe = 32767, .max_wr = UINT32_MAX}, // above 32 bits
        {.sq = 1u << 31,
         .rq = 1u << 31,
         .cqe = INT32_MAX,
         .max_wr = UINT32_MAX,
         .max_cqe = INT32_MAX},
        {.set = INT32_MAX, .cqe = INT32_MAX, .max_cqe = INT32_MAX},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        fixture_reset();
        if (cases[i].max_cqe)
            fake_profile()->attr.max_cqe = cases[i].max_cqe;
        if (cases[i].max_wr)
            fake_profile()->attr.max_qp_wr = cases[i].max_wr;
        fixture_peer(&w);
        fixture_cfg(&w, &(const struct shape){.rcq_size = cases[i].rcq});
        if (cases[i].sq)
            MUST(rpma_conn_cfg_set_sq_size(w.h.cfg, cases[i].sq));
        if (cases[i].rq)
            MUST(rpma_conn_cfg_set_rq_size(w.h.cfg, cases[i].rq));
        if (cases[i].set)
            MUST(rpma_conn_cfg_set_cq_size(w.h.cfg, cases[i].set));
        request_by(OUTGOING, w.h.cfg);
        assert_int_equal(fake_nth("ibv_create_cq", 1)->create_cq.cqe, cases[i].cqe);
    }
}
