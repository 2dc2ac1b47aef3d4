// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_req.c -- outgoing connection requests, and the way of each request to a connection

#include "world.h"

#define RESOLVED "rdma_getaddrinfo rdma_create_id rdma_resolve_addr rdma_resolve_route "
#define QUEUES "ibv_create_comp_channel ibv_create_cq ibv_req_notify_cq "

static void new_request(const struct rpma_conn_cfg *cfg) {
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, cfg, &w.h.req));
}

// ---- rpma_conn_req_new() -------------------------------------------------------------------

TEST_THAT(new_resolves_and_makes_the_queues) {
    struct rpma_conn_private_data pdata = {&w, 1};
    world_peer(&w);
    new_request(NULL);
    world_expect_name(WORLD_ADDRESS, WORLD_PORT, 0);
    const struct fake_call *route = fake_last("rdma_getaddrinfo");
    assert_string_equal(route->getaddrinfo.node, "");
    assert_int_equal(route->getaddrinfo.flags, 0);
    assert_int_equal(route->getaddrinfo.qp_type, IBV_QPT_RC);
    assert_int_equal(route->getaddrinfo.port_space, RDMA_PS_TCP);
    assert_true(fake_addr_is(fake_last("rdma_resolve_addr")->resolve.addr, 0));
    assert_null(fake_last("rdma_resolve_addr")->resolve.source);
    assert_null(fake_last("rdma_create_id")->channel);
    assert_int_equal(fake_last("rdma_resolve_addr")->resolve.timeout_ms, 1000);
    assert_int_equal(fake_last("rdma_resolve_route")->resolve.timeout_ms, 1000);
    const struct fake_call *cq = fake_last("ibv_create_cq");
    assert_int_equal(cq->create_cq.cqe, 20);
    assert_int_equal(cq->create_cq.comp_vector, 0);
    assert_null(cq->create_cq.cq_context);
    MUST(rpma_conn_req_get_private_data(w.h.req, &pdata)); // an outgoing request has none
    assert_null(pdata.ptr);
    assert_int_equal(pdata.len, 0);
}

// A completion that finds no room is lost. A size that the program set is used as it is.
TEST_THAT(new_makes_room_for_all_completions) {
    static const struct {
        uint32_t sq, rq, rcq, srq_rcq; // 0: none, or the default
        bool srq;                      // for 100 receives
        uint32_t set, cqe;
    } cases[] = {
        {.cqe = 20},
        {.sq = 100, .cqe = 110},
        {.rq = 100, .cqe = 110},
        {.sq = 1, .rq = 1, .cqe = 10},
        {.rcq = 5, .cqe = 10},
        {.sq = 100, .rcq = 5, .cqe = 100},
        {.srq = true, .cqe = 10 + 127}, // rdma_rxe rounds the 100 entries up
        {.srq = true, .srq_rcq = 70, .cqe = 10},
        {.srq = true, .rcq = 5, .cqe = 10},
        {.sq = 1000, .rq = 1000, .set = 10, .cqe = 10},
        {.sq = 20000, .rq = 20000, .cqe = 32767}, // the limit of the device
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const struct shape shape = {
            .rcq_size = cases[i].rcq, .srq = cases[i].srq, .srq_rcq_size = cases[i].srq_rcq};
        uint32_t size = 0;
        world_anew();
        world_peer(&w);
        world_cfg(&w, &shape);
        if (cases[i].sq)
            MUST(rpma_conn_cfg_set_sq_size(w.h.cfg, cases[i].sq));
        if (cases[i].rq)
            MUST(rpma_conn_cfg_set_rq_size(w.h.cfg, cases[i].rq));
        if (cases[i].set)
            MUST(rpma_conn_cfg_set_cq_size(w.h.cfg, cases[i].set));
        MUST(rpma_conn_cfg_get_cq_size(w.h.cfg, &size));
        assert_int_equal(size, 10);
        new_request(w.h.cfg);
        assert_int_equal(fake_nth("ibv_create_cq", 1)->create_cq.cqe, cases[i].cqe);
    }
}

TEST_THAT(new_describes_the_queue_pair) {
    world_peer(&w);
    fake_device()->max_cqe = INT32_MAX;
    MUST(rpma_conn_cfg_new(&w.h.cfg));
    MUST(rpma_conn_cfg_set_timeout(w.h.cfg, 7));
    MUST(rpma_conn_cfg_set_cq_size(w.h.cfg, UINT32_MAX));
    MUST(rpma_conn_cfg_set_rcq_size(w.h.cfg, 12));
    MUST(rpma_conn_cfg_set_sq_size(w.h.cfg, 13));
    MUST(rpma_conn_cfg_set_rq_size(w.h.cfg, 14));
    new_request(w.h.cfg);
    EXPECT_CALLS(RESOLVED QUEUES QUEUES "rdma_create_qp_ex rdma_freeaddrinfo");
    assert_string_equal(logged_line(RPMA_LOG_LEVEL_NOTICE, 0)->message,
                        "requesting a connection to " WORLD_ADDRESS ":" WORLD_PORT);
    assert_int_equal(fake_last("rdma_resolve_addr")->resolve.timeout_ms, 7);
    assert_int_equal(fake_last("rdma_resolve_route")->resolve.timeout_ms, 7);
    assert_int_equal(fake_nth("ibv_create_cq", 1)->create_cq.cqe, INT32_MAX);
    assert_int_equal(fake_nth("ibv_create_cq", 2)->create_cq.cqe, 12);
    const struct ibv_qp_init_attr_ex *qp = &fake_last("rdma_create_qp_ex")->qp;
    assert_int_equal(qp->cap.max_send_wr, 13);
    assert_int_equal(qp->cap.max_recv_wr, 14);
    assert_int_equal(qp->cap.max_send_sge, 1);
    assert_int_equal(qp->cap.max_recv_sge, 1);
    assert_int_equal(qp->cap.max_inline_data, 8);
    assert_int_equal(qp->qp_type, IBV_QPT_RC);
    assert_int_equal(qp->sq_sig_all, 0);
    assert_int_equal(qp->comp_mask, IBV_QP_INIT_ATTR_PD);
    assert_null(qp->srq);
    assert_ptr_not_equal(qp->send_cq, qp->recv_cq);
    assert_ptr_equal(qp->send_cq->channel, fake_nth("ibv_create_cq", 1)->create_cq.channel);
    assert_ptr_equal(qp->recv_cq->channel, fake_nth("ibv_create_cq", 2)->create_cq.channel);
}

// ---- rpma_conn_req_connect() ---------------------------------------------------------------

static const struct shape outgoing = {.name = "outgoing"};
static const struct shape incoming = {.name = "incoming", .incoming = true};

static void new_request_of(const struct shape *shape) {
    world_peer(&w);
    world_request(&w, shape);
}

// An incoming ID got its own channel with the request, so none of its events can get lost.
TEST_THAT(connects_on_its_own_channel_with_the_defaults) {
    unsigned char bytes[56]; // the room in a request of InfiniBand
    const struct rpma_conn_private_data data[] = {
        {bytes, sizeof(bytes)}, {bytes, 1}, {NULL, 0}};
    memset(bytes, 0x77, sizeof(bytes));
    for (size_t i = 0; i < LENGTH(data); i++)
        for (int comes = 0; comes < 2; comes++) {
            const uint8_t len = data[i].len;
            world_anew();
            new_request_of(comes ? &incoming : &outgoing);
            MUST(rpma_conn_req_connect(&w.h.req, len ? &data[i] : NULL, &w.h.conn));
            assert_null(w.h.req);
            assert_int_equal(fake_ids_on(world_event_fd(&w)), 1);
            if (comes)
                assert_int_equal(fake_ids_on(world_ep_fd(&w)), 1); // only the listener
            const struct fake_call *call = fake_last(comes ? "rdma_accept" : "rdma_connect");
            const struct rdma_conn_param *param = &call->connect.param;
            assert_int_equal(param->private_data_len, len);
            assert_memory_equal(call->connect.data, bytes, len);
            assert_int_equal(param->private_data != NULL, len != 0);
            assert_int_equal(param->responder_resources, RDMA_MAX_RESP_RES);
            assert_int_equal(param->initiator_depth, RDMA_MAX_INIT_DEPTH);
            assert_int_equal(param->flow_control, 1);
            assert_int_equal(param->retry_count, 7);
            assert_int_equal(param->rnr_retry_count, 7);
        }
}

// EINVAL may mean too much private data, but only if there is any.
TEST_THAT(private_data_is_suspected_where_it_can_be) {
    static const struct {
        uint8_t len;
        int error;
        bool suspected;
    } cases[] = {{0, EINVAL, false}, {1, EINVAL, true}, {1, EIO, false}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const struct rpma_conn_private_data pdata = {(void *)"x", cases[i].len};
        world_anew();
        new_request_of(&outgoing);
        fake_fail("rdma_connect", 1, cases[i].error);
        EXPECT_ERROR(rpma_conn_req_connect(&w.h.req, cases[i].len ? &pdata : NULL, &w.h.conn),
                     RPMA_E_PROVIDER, "outgoing:", "rdma_connect()", cases[i].error,
                     .any_calls = true);
        const char *line = logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message;
        assert_int_equal(strstr(line, "carry 56 bytes") != NULL, cases[i].suspected);
    }
}
