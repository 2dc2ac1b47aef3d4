// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq_shared.c -- the CQ of each completion: queues of one connection, and queues of the
// program that connections share

#include "fixture.h"

// ---- the queue of each completion ----------------------------------------------------------

static const struct layout {
    // Sizes of the queues that the connection creates; 0: none. rdma_rxe rounds the 100
    // receives of an SRQ up to 127.
    uint32_t makes[2];
    unsigned channels;                  // channels that it creates
    const char *sends, *receives, *rcq; // "cq", "rcq": shared; "own", "own rcq", "srq", "none"
    struct shape shape;
} layouts[] = {
    {{20}, 1, "own", "own", "none"},
    {{10, 4}, 2, "own", "own rcq", "own rcq", {.rcq_size = 4}},
    {{20}, 1, "own", "own", "none", {.shared = true}},
    {{10, 4}, 1, "own", "own rcq", "own rcq", {.shared = true, .rcq_size = 4}},
    {{137}, 1, "own", "own", "none", {.srq = true}},
    {{10, 4}, 2, "own", "own rcq", "own rcq", {.srq = true, .rcq_size = 4}},
    {{10}, 1, "own", "srq", "none", {.srq = true, .srq_rcq_size = 4}},
    {{10}, 1, "own", "srq", "none", {.srq = true, .srq_rcq_size = 4, .rcq_size = 4}},
    {{0}, 0, "cq", "cq", "none", {.shared_cq = 8}},
    {{10}, 1, "own", "rcq", "rcq", {.shared_rcq = 8}},
    {{0}, 0, "cq", "rcq", "rcq", {.shared_cq = 8, .shared_rcq = 8}},
    {{5}, 1, "cq", "own rcq", "own rcq", {.shared_cq = 8, .rcq_size = 5}},
    {{10}, 1, "own", "rcq", "rcq", {.shared_rcq = 8, .rcq_size = 5}},
    {{0}, 0, "cq", "cq", "none", {.shared_cq = 8, .srq = true}},
    {{0}, 0, "cq", "srq", "none", {.shared_cq = 8, .srq = true, .srq_rcq_size = 5}},
    {{10}, 1, "own", "rcq", "rcq", {.shared_rcq = 8, .srq = true}},
    {{0}, 0, "cq", "rcq", "rcq", {.shared_cq = 8, .shared_rcq = 8, .srq = true}},
};

static struct rpma_cq *queue_called(const char *name) {
    struct rpma_cq *of_srq = NULL;
    if (strcmp(name, "srq") == 0)
        MUST(rpma_srq_get_rcq(w.h.srq, &of_srq));
    return strcmp(name, "cq") == 0        ? w.h.shared_cq
           : strcmp(name, "rcq") == 0     ? w.h.shared_rcq
           : strcmp(name, "own") == 0     ? fixture_cq(&w)
           : strcmp(name, "own rcq") == 0 ? fixture_rcq(&w)
                                          : of_srq;
}

// The provider's CQ. On a shared channel, a receive CQ of the connection is the second one.
static struct ibv_cq *device_queue(const struct layout *layout, const char *name) {
    const bool second = layout->shape.shared && strcmp(name, "own rcq") == 0;
    return fake_cq_on(fixture_cq_fd(queue_called(name)), second);
}

static struct rpma_peer_event event_of(enum ibv_event_type type, void *object) {
    struct rpma_peer_event event;
    fake_async_event(fake_context(0), type, object, 0);
    MUST(rpma_peer_next_event(w.h.peer, &event));
    return event;
}

// Expects the right handle in the events of every queue, of the program and of the connection.
static void expect_handles(const struct layout *layout, struct ibv_qp *qp) {
    assert_ptr_equal(event_of(IBV_EVENT_QP_FATAL, qp).conn, w.h.conn);
    assert_ptr_equal(event_of(IBV_EVENT_CQ_ERR, qp->send_cq).cq, queue_called(layout->sends));
    assert_ptr_equal(event_of(IBV_EVENT_CQ_ERR, qp->recv_cq).cq,
                     queue_called(layout->receives));
    if (qp->srq)
        assert_ptr_equal(event_of(IBV_EVENT_SRQ_ERR, qp->srq).srq, w.h.srq);
}

TEST_THAT(each_completion_is_in_its_queue) {
    for (const struct layout *layout = layouts; layout < layouts + LENGTH(layouts); layout++)
        for (int incoming = 0; incoming < 2; incoming++) {
            struct shape shape = layout->shape;
            shape.incoming = incoming;
            fixture_reset();
            fixture_peer(&w);
            fixture_request(&w, &shape);
            assert_int_equal(fake_count("ibv_create_cq"),
                             !!layout->makes[0] + !!layout->makes[1]);
            for (unsigned i = 0; i < 2 && layout->makes[i]; i++)
                assert_int_equal(fake_nth("ibv_create_cq", i + 1)->create_cq.cqe,
                                 layout->makes[i]);
            assert_int_equal(fake_count("ibv_create_comp_channel"), layout->channels);
            const struct ibv_qp_cap *cap = &fake_last("rdma_create_qp_ex")->qp.cap;
            assert_int_equal(cap->max_recv_wr, shape.srq ? 0 : 10);
            assert_int_equal(cap->max_recv_sge, shape.srq ? 0 : 1);
            fixture_connect(&w, &shape);
            struct ibv_qp *const qp = fixture_qp(&w);
            assert_int_equal(qp->srq != NULL, shape.srq);
            assert_ptr_equal(qp->send_cq, device_queue(layout, layout->sends));
            assert_ptr_equal(qp->recv_cq, device_queue(layout, layout->receives));
            assert_true(fake_armed(qp->send_cq) && fake_armed(qp->recv_cq));
            assert_ptr_equal(fixture_cq(&w), queue_called(layout->sends));
            assert_ptr_equal(fixture_rcq(&w), queue_called(layout->rcq));
            assert_non_null(fixture_cq(&w));
            expect_handles(layout, qp);
        }
}

TEST_THAT(queue_for_both_directions_is_the_main_cq) {
    const struct shape shape = {.shared_cq = 8, .rcq_size = 4};
    fixture_peer(&w);
    fixture_cfg(&w, &shape);
    MUST(rpma_conn_cfg_set_rcq(w.h.cfg, w.h.shared_cq));
    MUST(rpma_conn_req_new(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, w.h.cfg, &w.h.req));
    assert_int_equal(fake_count("ibv_create_cq"), 0);
    fixture_connect(&w, &shape);
    assert_ptr_equal(fixture_cq(&w), w.h.shared_cq);
    assert_null(fixture_rcq(&w));
    assert_ptr_equal(fixture_qp(&w)->recv_cq, fixture_qp(&w)->send_cq);
    EXPECT_ERROR(rpma_cq_delete(&w.h.shared_cq), RPMA_E_PROVIDER, "the CQ stays",
                 "or a connection still uses it", .logs = "before its connections (1)",
                 .own_error = EBUSY);
}

// A completion queue belongs to a device, independently of the protection domain.
TEST_THAT(queue_of_another_peer_of_the_device_is_accepted) {
    struct rpma_peer *other = NULL;
    fixture_peer(&w);
    MUST(rpma_peer_new(fake_context(0), &other));
    MUST(rpma_cq_new(other, NULL, &w.h.shared_cq));
    MUST(rpma_conn_cfg_new(&w.h.cfg));
    MUST(rpma_conn_cfg_set_cq(w.h.cfg, w.h.shared_cq));
    MUST(rpma_conn_req_new(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, w.h.cfg, &w.h.req));
    MUST(rpma_conn_req_delete(&w.h.req));
    MUST(rpma_cq_delete(&w.h.shared_cq));
    MUST(rpma_peer_delete(&other));
}
