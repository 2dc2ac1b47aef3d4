// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cfg_refused.c -- configurations that do not fit together or do not fit the device, in each of
// the functions that make the queues of a connection

#include "world.h"

enum lent { OF_PROGRAM, OF_CONNECTION, OF_SRQ, OF_OTHER_DEVICE };

static const struct conflict {
    const char *condition, *cause, *logs;
    int (*set)(struct rpma_conn_cfg *cfg, struct rpma_cq *cq); // NULL: nothing is lent
    enum lent lent;
    struct shape shape;
    int code;         // 0: RPMA_E_INVAL
    int max_sge;      // of the device; 0: 32
    bool has_flushes; // the device
} conflicts[] = {
// clang-format off
#define SHARED_AND "cfg has a shared completion channel && cfg has "
#define SHARED_LOGS "a shared completion channel and a completion queue of rpma_cq_new()"
#define FOREIGN "a CQ of cfg was not"
    {"channel && cfg has an SRQ", SHARED_AND "an SRQ that owns a receive CQ", "shared", NULL, OF_PROGRAM,
     {.shared = true, .srq = true, .srq_rcq_size = 1}},
    {"channel && cfg has a CQ", SHARED_AND "a CQ of rpma_cq_new()", SHARED_LOGS, rpma_conn_cfg_set_cq, OF_PROGRAM,
     {.shared = true}},
    {"channel && cfg has a CQ", SHARED_AND "a CQ of rpma_cq_new()", SHARED_LOGS, rpma_conn_cfg_set_rcq, OF_PROGRAM,
     {.shared = true, .rcq_size = 4}},
    {"new() && cfg has an SRQ", "cfg has a receive CQ of rpma_cq_new() && cfg has an SRQ that owns a receive CQ",
     "a receive CQ of rpma_cq_new(), and its shared receive queue owns one", rpma_conn_cfg_set_rcq, OF_PROGRAM,
     {.srq = true, .srq_rcq_size = 4}},
    {FOREIGN, FOREIGN " made by rpma_cq_new()", "was not made by rpma_cq_new()", rpma_conn_cfg_set_cq, OF_CONNECTION},
    {FOREIGN, FOREIGN " made by rpma_cq_new()", "was not made by rpma_cq_new()", rpma_conn_cfg_set_rcq, OF_SRQ},
    {FOREIGN, "a CQ of cfg is on another device than the peer", "it is on fake1, the peer on fake0",
     rpma_conn_cfg_set_cq, OF_OTHER_DEVICE},
    {FOREIGN, "a CQ of cfg is on another device than the peer", "it is on fake1, the peer on fake0",
     rpma_conn_cfg_set_rcq, OF_OTHER_DEVICE},
#define PIECES(most, of_device, limit, text) \
    {"max_sge of cfg", "max_sge of cfg > " limit, text, NULL, OF_PROGRAM, {.max_sge = (most) + 1}, 0, of_device}
    PIECES(1, 1, "max_sge of the device", "max_sge of cfg is 2, the device has 1 (max_sge)"),
    PIECES(32, 32, "max_sge of the device", "max_sge of cfg is 33, the device has 32 (max_sge)"),
    PIECES(128, 200, "128", "librpma has 128 at most"), // rpma_post() has so many on its stack
#define NO_NATIVE_FLUSH                                                                             \
    "the flush mode of cfg", "the flush mode of cfg is RPMA_FLUSH_MODE_NATIVE && the device or the " \
    "build has no native flush", "fake0 has no native flush", NULL, OF_PROGRAM,                     \
    {.flush_mode = RPMA_FLUSH_MODE_NATIVE}, RPMA_E_NOSUPP, 0
    {NO_NATIVE_FLUSH, false},
    {NO_NATIVE_FLUSH, !BUILD_FLUSHES},
    // clang-format on
};

static struct rpma_peer *other_peer;
static struct rpma_srq *other_srq;
static struct rpma_conn_req *other_req;
static struct rpma_conn *other_conn;

static struct rpma_cq *foreign_queue(enum lent lent) {
    struct rpma_cq *cq = NULL;
    if (lent == OF_CONNECTION) {
        MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &other_req));
        MUST(rpma_conn_req_connect(&other_req, NULL, &other_conn));
        MUST(rpma_conn_get_cq(other_conn, &cq));
    } else if (lent == OF_SRQ) {
        MUST(rpma_srq_new(w.h.peer, NULL, &other_srq));
        MUST(rpma_srq_get_rcq(other_srq, &cq));
    } else {
        MUST(rpma_peer_new(fake_context(lent == OF_OTHER_DEVICE), &other_peer));
        MUST(rpma_cq_new(other_peer, NULL, &w.h.lent_cq));
        cq = w.h.lent_cq;
    }
    return cq;
}

static void expect_refused(const struct conflict *c, const char *function, int ret,
                           const char *calls) {
    unit_expect_error(ret, function,
                      &(struct expected_error){c->code ? c->code : RPMA_E_INVAL, c->condition,
                                               c->cause, .logs = c->logs, .calls = calls,
                                               .any_calls = !calls && c->max_sge},
                      __FILE__, __LINE__);
    assert_int_equal(fake_count("ibv_create_cq") + fake_count("rdma_create_qp_ex"), 0);
}

// A request that is not rejected keeps the descriptor readable and its client waiting.
static void refuse(const struct conflict *c) {
    world_listen(&w);
    WATCH(w.h);
    unit_begin();
    expect_refused(c, "rpma_conn_req_new",
                   rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req),
                   NULL);
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
    WATCH(w.h);
    unit_begin();
    expect_refused(c, "rpma_ep_next_conn_req", rpma_ep_next_conn_req(w.h.ep, w.h.cfg, &w.h.req),
                   "rdma_get_cm_event rdma_reject rdma_destroy_id rdma_ack_cm_event");
    assert_int_equal(fake_pending_on(world_ep_fd(&w)), 0);
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
    MUST(rpma_ep_next_incoming(w.h.ep, &w.h.req));
    WATCH(w.h);
    unit_begin();
    expect_refused(c, "rpma_conn_req_setup", rpma_conn_req_setup(w.h.req, w.h.cfg), NULL);
    MUST(rpma_conn_req_setup(w.h.req, NULL)); // in another way it can be set up
}

TEST_THAT(conflicts_are_refused) {
    for (const struct conflict *c = conflicts; c < conflicts + LENGTH(conflicts); c++) {
        world_anew();
        fake_device()->max_sge = c->max_sge ? c->max_sge : FAKE_MAX_SGE;
        fake_device()->native_flush = c->has_flushes;
        world_peer(&w);
        world_cfg(&w, &c->shape);
        if (c->set)
            MUST(c->set(w.h.cfg, foreign_queue(c->lent)));
        refuse(c);
        MUST(rpma_conn_req_delete(&w.h.req));
        if (w.h.lent_cq)
            MUST(rpma_cq_delete(&w.h.lent_cq)); // no connection uses it
        MUST(rpma_conn_delete(&other_conn));
        MUST(rpma_srq_delete(&other_srq));
        MUST(rpma_peer_delete(&other_peer));
    }
}

// A completion queue belongs to a device, whatever its protection domain.
TEST_THAT(queue_of_another_peer_of_the_device_will_do) {
    const struct shape shape = {0};
    world_peer(&w);
    world_cfg(&w, &shape);
    MUST(rpma_conn_cfg_set_cq(w.h.cfg, foreign_queue(OF_PROGRAM)));
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req));
    MUST(rpma_conn_req_delete(&w.h.req));
    MUST(rpma_cq_delete(&w.h.lent_cq));
    MUST(rpma_peer_delete(&other_peer));
}
