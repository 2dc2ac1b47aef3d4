// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// steps_refused.c -- steps of a connection in the wrong order or with invalid arguments

#include "arguments.h"

#define BARE "rdma_reject rdma_destroy_id rdma_destroy_event_channel"
#define STARTED "rdma_destroy_id rdma_destroy_event_channel"
#define DROP_QP "rdma_destroy_qp ibv_destroy_cq ibv_destroy_comp_channel "
#define OUTGOING DROP_QP "rdma_destroy_id"
#define INCOMING DROP_QP BARE

static void no_request(void) {}
static void start_request(void) {
    fake_device()->silent = true;
    MUST(rpma_conn_req_start(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, NULL, &w.h.req));
}
static void resolve(void) {
    MUST(rpma_conn_req_start(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, NULL, &w.h.req));
    MUST(rpma_conn_req_resolve(w.h.req));
}
static void new_in_one_step(void) {
    MUST(rpma_conn_req_new(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, NULL, &w.h.req));
}
static void receive_request(void) {
    fixture_listen(&w);
    fake_cm_event(fixture_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
}
static void take_bare(void) {
    receive_request();
    MUST(rpma_ep_next_incoming(w.h.ep, &w.h.req));
}
static void take_in_one_step(void) {
    receive_request();
    MUST(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req));
}
static void set_up_resolved(void) {
    resolve();
    MUST(rpma_conn_req_setup(w.h.req, NULL));
}
static void set_up_bare(void) {
    take_bare();
    MUST(rpma_conn_req_setup(w.h.req, NULL));
}
static void remove_device(void) {
    fake_cm_event(fixture_req_fd(&w), RDMA_CM_EVENT_DEVICE_REMOVAL, NULL, 0);
    assert_int_equal(rpma_conn_req_resolve(w.h.req), RPMA_E_PROVIDER);
}
static void fail_resolved(void) {
    resolve();
    remove_device();
}
static void fail_set_up(void) {
    set_up_resolved();
    remove_device();
}

static const struct rpma_conn_private_data no_bytes = {&w, 0}, no_pointer = {NULL, 1};

// Receives and connections need queues. Connecting and rejecting consume the request.
static const struct wrong {
    void (*make)(void);
    const char *function, *condition, *logs;
    const char *deleted;   // the calls that delete the request; NULL: it is unchanged
    const char *parameter; // the parameter with value; NULL: all are valid, pdata is NULL
    const void *value;
} wrongs[] = {
// clang-format off
#define SETUP "rpma_conn_req_setup"
#define CONNECT "rpma_conn_req_connect"
#define REJECT "rpma_conn_req_reject"
#define ALREADY "the request is set up already", "set up already; a request is set up once"
#define NOT_SET_UP "the request is not set up", "the request is not set up"
#define FAILED "the request has failed", "the request has failed: delete it"
#define NO_PLACE "conn_ptr == NULL", "conn_ptr == NULL"
#define IN_PDATA "pdata != NULL && (pdata->ptr == NULL || pdata->len == 0)"
#define NO_BYTES IN_PDATA, "pdata->len is 0; possible: 1 and more, or pdata == NULL"
#define NO_POINTER IN_PDATA, "pdata->ptr == NULL"
    {start_request, SETUP, "the request is not resolved",
     "the request is not resolved: wait until rpma_conn_req_resolve() returns 0"},
    {start_request, "rpma_conn_req_get_local_addr", "the request is not resolved",
     "the request is not resolved: wait until rpma_conn_req_resolve() returns 0"},
    {fail_resolved, "rpma_conn_req_get_local_addr", FAILED},
    {fail_set_up, "rpma_conn_req_get_local_addr", FAILED},
    {set_up_resolved, SETUP, ALREADY},
    {set_up_bare, SETUP, ALREADY},
    {new_in_one_step, SETUP, ALREADY},
    {take_in_one_step, SETUP, ALREADY},
    {start_request, "rpma_conn_req_recv", NOT_SET_UP},
    {resolve, "rpma_conn_req_recv", NOT_SET_UP},
    {take_bare, "rpma_conn_req_recv", NOT_SET_UP},
    {start_request, "rpma_conn_req_recv_many", NOT_SET_UP},
    {resolve, "rpma_conn_req_recv_many", NOT_SET_UP},
    {take_bare, "rpma_conn_req_recv_many", NOT_SET_UP},
    {start_request, CONNECT, NOT_SET_UP, STARTED},
    {resolve, CONNECT, NOT_SET_UP, STARTED},
    {take_bare, CONNECT, NOT_SET_UP, BARE},
    {fail_resolved, "rpma_conn_req_resolve", FAILED},
    {fail_resolved, SETUP, FAILED},
    {fail_resolved, "rpma_conn_req_recv", FAILED},
    {fail_resolved, "rpma_conn_req_recv_many", FAILED},
    {fail_resolved, CONNECT, FAILED, STARTED},
    {fail_set_up, "rpma_conn_req_resolve", FAILED},
    {fail_set_up, SETUP, FAILED},
    {fail_set_up, "rpma_conn_req_recv", FAILED},
    {fail_set_up, "rpma_conn_req_recv_many", FAILED},
    {fail_set_up, CONNECT, FAILED, DROP_QP STARTED},
    {new_in_one_step, "rpma_conn_req_get_event_fd", "the request was made by rpma_conn_req_new()",
     "a request of rpma_conn_req_new() has no events: use rpma_conn_req_start()"},
    {no_request, CONNECT, "req_ptr == NULL", "req_ptr == NULL", NULL, "req_ptr", NULL},
    {no_request, CONNECT, "*req_ptr == NULL", "*req_ptr == NULL"},
    {no_request, REJECT, "req_ptr == NULL", "req_ptr == NULL", NULL, "req_ptr", NULL},
    {no_request, REJECT, "*req_ptr == NULL", "*req_ptr == NULL"},
    {new_in_one_step, CONNECT, NO_PLACE, OUTGOING, "conn_ptr", NULL},
    {new_in_one_step, CONNECT, NO_BYTES, OUTGOING, "pdata", &no_bytes},
    {new_in_one_step, CONNECT, NO_POINTER, OUTGOING, "pdata", &no_pointer},
    {take_in_one_step, CONNECT, NO_PLACE, INCOMING, "conn_ptr", NULL},
    {take_in_one_step, CONNECT, NO_BYTES, INCOMING, "pdata", &no_bytes},
    {take_in_one_step, CONNECT, NO_POINTER, INCOMING, "pdata", &no_pointer},
    {take_bare, REJECT, NO_BYTES, BARE, "pdata", &no_bytes},
    {take_bare, REJECT, NO_POINTER, BARE, "pdata", &no_pointer},
    {start_request, REJECT, "the request is an outgoing one",
     "the request is an outgoing one: only an incoming one can be rejected", STARTED},
    // clang-format on
};

TEST_THAT(steps_in_wrong_state_are_rejected) {
    static struct arguments a;
    for (const struct wrong *wrong = wrongs; wrong < wrongs + LENGTH(wrongs); wrong++) {
        fixture_reset();
        fixture_peer(&w);
        wrong->make();
        const struct rpma_conn_req *const req = w.h.req;
        arguments_good(&a, wrong->function, &w);
        (void)arguments_set(&a, "pdata", 0);
        (void)arguments_set(&a, "cfg", 0);
        if (wrong->parameter)
            assert_true(arguments_set(&a, wrong->parameter, (uintptr_t)wrong->value));
        arguments_watch(&a);
        WATCH(w.h.conn);
        EXPECT_ERROR_OF(wrong->function, arguments_call(&a), RPMA_E_INVAL, wrong->condition,
                        wrong->condition, .logs = wrong->logs, .calls = wrong->deleted);
        assert_ptr_equal(w.h.req, wrong->deleted ? NULL : req);
    }
}

// A request of rpma_conn_req_new() is resolved. The descriptor of an incoming request has its
// events.
TEST_THAT(new_returns_a_resolved_request) {
    int fd = 7;
    fixture_peer(&w);
    new_in_one_step();
    MUST(rpma_conn_req_resolve(w.h.req));
    EXPECT_CALLS("");
    MUST(rpma_conn_req_delete(&w.h.req));
    take_in_one_step();
    MUST(rpma_conn_req_resolve(w.h.req));
    EXPECT_CALLS("");
    MUST(rpma_conn_req_get_event_fd(w.h.req, &fd));
    assert_int_equal(fake_ids_on(fd), 1);
}
