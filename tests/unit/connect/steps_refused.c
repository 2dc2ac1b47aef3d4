// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// steps_refused.c -- steps of a connection that are taken in the wrong order, with bad
// arguments, or with a configuration that does not fit

#include "world.h"

#define BARE "rdma_reject rdma_destroy_id rdma_destroy_event_channel"
#define STARTED "rdma_destroy_id rdma_destroy_event_channel"
#define DROP_QP "rdma_destroy_qp ibv_destroy_cq ibv_destroy_comp_channel "
#define OUTGOING DROP_QP "rdma_destroy_id"
#define INCOMING DROP_QP BARE

static void start(void) {
    MUST(rpma_conn_req_start(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &w.h.req));
}

static void start_and_resolve(void) {
    start();
    MUST(rpma_conn_req_resolve(w.h.req));
}

static void new_in_one_step(void) {
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &w.h.req));
}

static void take_bare(void) {
    world_listen(&w);
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
    MUST(rpma_ep_next_incoming(w.h.ep, &w.h.req));
}

static void take_in_one_step(void) {
    world_listen(&w);
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
    MUST(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req));
}

// ---- the order -----------------------------------------------------------------------------

TEST_THAT(queues_are_made_once_and_for_what_is_resolved) {
    static void (*const ready[])(void) = {start_and_resolve, take_bare};
    fake_device()->silent = true;
    world_peer(&w);
    start();
    WATCH(w.h);
    EXPECT_ERROR(rpma_conn_req_setup(w.h.req, NULL), RPMA_E_INVAL, "is not resolved",
                 "the request is not resolved");
    world_drop(&w);
    for (size_t i = 0; i < LENGTH(ready); i++) {
        world_anew();
        world_peer(&w);
        ready[i]();
        MUST(rpma_conn_req_setup(w.h.req, NULL));
        WATCH(w.h);
        EXPECT_ERROR(rpma_conn_req_setup(w.h.req, NULL), RPMA_E_INVAL, "set up already",
                     "the request is set up already");
    }
}

// Receives need queues, and so does a connection. Connecting uses the request up.
TEST_THAT(nothing_goes_before_the_queues) {
    static const struct {
        void (*make)(void);
        const char *deleted;
    } cases[] = {
        {start, STARTED},
        {start_and_resolve, STARTED},
        {take_bare, BARE},
    };
    const struct rpma_receive receive = {.local = {w.h.mr, 0, 8}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        world_anew();
        world_peer(&w);
        cases[i].make();
        WATCH(w.h);
        EXPECT_ERROR(rpma_conn_req_recv(w.h.req, w.h.mr, 0, 8, NULL), RPMA_E_INVAL,
                     "is not set up", "the request is not set up");
        uint32_t posted = 7;
        WATCH(posted);
        EXPECT_ERROR(rpma_conn_req_recv_many(w.h.req, &receive, 1, &posted), RPMA_E_INVAL,
                     "is not set up", "the request is not set up");
        WATCH(w.h.conn);
        EXPECT_ERROR(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn), RPMA_E_INVAL,
                     "is not set up", "the request is not set up", .calls = cases[i].deleted);
        assert_null(w.h.req);
    }
}

// A request may be deleted, or its client rejected, at every step.
TEST_THAT(every_step_may_be_the_last) {
    static void (*const steps[])(void) = {start, start_and_resolve, take_bare};
    for (size_t i = 0; i < LENGTH(steps); i++)
        for (int set_up = 0; set_up < 2; set_up++)
            for (int rejects = 0; rejects < 2; rejects++) {
                world_anew();
                world_peer(&w);
                steps[i]();
                if (set_up && steps[i] != start)
                    MUST(rpma_conn_req_setup(w.h.req, NULL));
                if (rejects && steps[i] == take_bare)
                    MUST(rpma_conn_req_reject(&w.h.req, NULL));
                else
                    MUST(rpma_conn_req_delete(&w.h.req));
            }
}

// Requests that are made in one step have nothing to resolve, and may block when they are read.
TEST_THAT(one_step_leaves_nothing_to_resolve) {
    static void (*const made[])(void) = {new_in_one_step, take_in_one_step};
    for (size_t i = 0; i < LENGTH(made); i++) {
        int fd = 7;
        world_anew();
        world_peer(&w);
        made[i]();
        MUST(rpma_conn_req_resolve(w.h.req));
        EXPECT_CALLS("");
        WATCH(w.h);
        EXPECT_ERROR(rpma_conn_req_setup(w.h.req, NULL), RPMA_E_INVAL, "set up already",
                     "the request is set up already");
        if (made[i] == take_in_one_step) {
            MUST(rpma_conn_req_get_event_fd(w.h.req, &fd));
            assert_int_equal(fake_ids_on(fd), 1);
        } else {
            WATCH(fd);
            EXPECT_ERROR(rpma_conn_req_get_event_fd(w.h.req, &fd), RPMA_E_INVAL,
                         "the request was made by rpma_conn_req_new()",
                         "the request was made by rpma_conn_req_new()",
                         .logs = "a request of rpma_conn_req_new() has no events");
        }
    }
}

// ---- connecting and rejecting --------------------------------------------------------------

TEST_THAT(nothing_is_consumed_without_a_request) {
    memset(&w.h, 0, sizeof(w.h));
    for (int gives_none = 0; gives_none < 2; gives_none++) {
        struct rpma_conn_req **const req = gives_none ? &w.h.req : NULL;
        const char *const cause = gives_none ? "*req_ptr == NULL" : "req_ptr == NULL";
        WATCH(w.h);
        EXPECT_ERROR(rpma_conn_req_connect(req, NULL, &w.h.conn), RPMA_E_INVAL, cause, cause);
        EXPECT_ERROR(rpma_conn_req_reject(req, NULL), RPMA_E_INVAL, cause, cause);
    }
}

TEST_THAT(bad_arguments_use_the_request_up) {
    static const char in_pdata[] = "pdata != NULL && (pdata->ptr == NULL || pdata->len == 0)",
                      no_place[] = "conn_ptr == NULL",
                      is_outgoing[] = "the request is an outgoing one";
    const struct rpma_conn_private_data no_bytes = {&w, 0}, no_pointer = {NULL, 1};
    const struct {
        void (*make)(void);
        bool rejects; // otherwise it connects, without a place for the connection if pdata is
                      // NULL
        const struct rpma_conn_private_data *pdata;
        const char *cause, *logs, *deleted;
    } cases[] = {
        {new_in_one_step, false, NULL, no_place, no_place, OUTGOING},
        {new_in_one_step, false, &no_bytes, in_pdata, "pdata->len is 0", OUTGOING},
        {new_in_one_step, false, &no_pointer, in_pdata, "pdata->ptr == NULL", OUTGOING},
        {take_in_one_step, false, NULL, no_place, no_place, INCOMING},
        {take_in_one_step, false, &no_bytes, in_pdata, "pdata->len is 0", INCOMING},
        {take_in_one_step, false, &no_pointer, in_pdata, "pdata->ptr == NULL", INCOMING},
        {take_bare, true, &no_bytes, in_pdata, "pdata->len is 0", BARE},
        {take_bare, true, &no_pointer, in_pdata, "pdata->ptr == NULL", BARE},
        {start, true, NULL, is_outgoing, is_outgoing, STARTED},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const struct rpma_conn_private_data *const pdata = cases[i].pdata;
        world_anew();
        world_peer(&w);
        cases[i].make();
        WATCH(w.h.conn);
        if (cases[i].rejects)
            EXPECT_ERROR(rpma_conn_req_reject(&w.h.req, pdata), RPMA_E_INVAL, cases[i].cause,
                         cases[i].cause, .logs = cases[i].logs, .calls = cases[i].deleted);
        else
            EXPECT_ERROR(rpma_conn_req_connect(&w.h.req, pdata, pdata ? &w.h.conn : NULL),
                         RPMA_E_INVAL, cases[i].cause, cases[i].cause, .logs = cases[i].logs,
                         .calls = cases[i].deleted);
        assert_null(w.h.req);
    }
}
