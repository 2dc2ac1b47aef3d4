// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// decisions.c -- A, B, C: leaks, races and non-blocking use; and the list of all decisions

#include "decisions.h"

void decisions_expect(const char *what, long long got, long long wanted, const char *file,
                      int line) {
    if (got == wanted)
        return;
    print_error("%s: %lld instead of %lld\n", what, got, wanted);
    _fail(file, line);
}

void decisions_code(int got, int wanted, const char *call, const char *file, int line) {
    if (got == wanted)
        return;
    print_error("%s: %s instead of %s\n", unit_function(call), contract_code_name(got),
                contract_code_name(wanted));
    _fail(file, line);
}

void decisions_without_memory(void) {
    fake_fail_from("malloc", 1, ENOMEM);
}

static const struct shape incoming = {.incoming = true};
static const struct shape outgoing = {0};

// A: a rejected client costs the server nothing.

TEST_THAT(A1) {
    assert_true(world_peer(&w) && world_request(&w, &incoming));
    MUST(rpma_conn_req_delete(&w.h.req));
    EXPECT_COUNT("rdma_reject", 1);
    EXPECT_COUNT("rdma_destroy_id", 1);
}

TEST_THAT(A2) {
    assert_true(world_peer(&w) && world_cfg(&w, &incoming) && world_listen(&w));
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
    fake_fail("ibv_create_cq", 1, EIO);
    unit_begin();
    EXPECT_CODE(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req), RPMA_E_PROVIDER);
    EXPECT_COUNT("rdma_reject", 1);
    EXPECT_COUNT("rdma_destroy_id", 1);
    fake_faults_off();

    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
    MUST(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req));
    fake_fail("rdma_accept", 1, EIO);
    unit_begin();
    EXPECT_CODE(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn), RPMA_E_PROVIDER);
    EXPECT_COUNT("rdma_reject", 1);
    EXPECT_COUNT("rdma_destroy_id", 1);
}

TEST_THAT(A3) {
    assert_true(world_peer(&w) && world_listen(&w));
    const unsigned before = unit_descriptors();
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
    MUST(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req));
    fake_fail("ibv_reg_mr", 1, EIO); // the registration of the flush target
    EXPECT_CODE(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn), RPMA_E_PROVIDER);
    EXPECT_EQUAL("open descriptors", unit_descriptors(), before);
}

// An object that the provider refuses to release stays, and the call can be repeated.
#define EXPECT_KEPT(member, function, verb)                             \
    do {                                                                \
        fake_fail(verb, 1, EBUSY);                                      \
        EXPECT_CODE(function(&w.h.member), RPMA_E_PROVIDER);            \
        EXPECT_EQUAL("handle after " #function, w.h.member != NULL, 1); \
        fake_faults_off();                                              \
        EXPECT_CODE(function(&w.h.member), 0);                          \
        EXPECT_EQUAL("handle after a retry", w.h.member != NULL, 0);    \
    } while (false)

TEST_THAT(A4) {
    assert_true(world_peer(&w) && world_listen(&w));
    MUST(rpma_srq_new(w.h.peer, NULL, &w.h.srq));
    EXPECT_KEPT(ep, rpma_ep_shutdown, "rdma_destroy_id");
    EXPECT_KEPT(srq, rpma_srq_delete, "ibv_destroy_srq");
    EXPECT_KEPT(mr, rpma_mr_dereg, "ibv_dereg_mr");
    EXPECT_KEPT(peer, rpma_peer_delete, "ibv_dealloc_pd");
}

TEST_THAT(A5) {
    int fd = -1;
    struct rpma_cq *cq = NULL;
    assert_true(world_conn(&w, &(const struct shape){.shared = true}));
    MUST(rpma_conn_get_compl_fd(w.h.conn, &fd));
    struct ibv_cq *foreign = fake_foreign_event(fd);
    EXPECT_CODE(rpma_conn_wait(w.h.conn, 0, &cq, NULL), RPMA_E_UNKNOWN);
    EXPECT_EQUAL("unacknowledged events", fake_unacked(foreign), 0);
}

// B: a request stands on its own.

TEST_THAT(B1) {
    assert_true(world_peer(&w) && world_request(&w, &incoming));
    // A reader of the endpoint sees only the listening ID.
    EXPECT_EQUAL("IDs on the endpoint's channel", fake_ids_on(world_ep_fd(&w)), 1);
    assert_true(world_connect(&w, &incoming));
}

TEST_THAT(B2) {
    assert_true(world_peer(&w) && world_request(&w, &incoming));
    MUST(rpma_ep_shutdown(&w.h.ep));
    EXPECT_EQUAL(fake_misuses(), *fake_misuses() != '\0', 0);
    assert_true(world_connect(&w, &incoming));
}

TEST_THAT(B3) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    struct rpma_conn_private_data pdata = {&pdata, 1};
    assert_true(world_peer(&w) && world_request(&w, &outgoing));
    MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
    fake_cm_event(world_event_fd(&w), RDMA_CM_EVENT_ESTABLISHED, "hello", 6);
    decisions_without_memory();
    EXPECT_CODE(rpma_conn_next_event(w.h.conn, &event), 0);
    EXPECT_EQUAL("event", event, RPMA_CONN_ESTABLISHED);
    MUST(rpma_conn_get_private_data(w.h.conn, &pdata));
    EXPECT_EQUAL("bytes of private data", pdata.len, 0);
}

// C: non-blocking use.

TEST_THAT(C1) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    assert_true(world_conn(&w, &incoming));
    world_nonblocking(world_ep_fd(&w));
    world_nonblocking(world_event_fd(&w));
    EXPECT_CODE(rpma_conn_next_event(w.h.conn, &event), RPMA_E_NO_EVENT);
    EXPECT_CODE(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req), RPMA_E_NO_EVENT);

    fake_cm_event(world_event_fd(&w), RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
    fake_fail("rdma_get_cm_event", 1, EINTR);
    EXPECT_CODE(rpma_conn_next_event(w.h.conn, &event), RPMA_E_PROVIDER);
    EXPECT_EQUAL("errno after a signal", errno, EINTR);
    fake_faults_off();
    EXPECT_CODE(rpma_conn_next_event(w.h.conn, &event), 0);
    fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, NULL, 0);
    fake_fail("rdma_get_cm_event", 1, EINTR);
    EXPECT_CODE(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req), RPMA_E_PROVIDER);
    EXPECT_EQUAL("errno after a signal", errno, EINTR);
    fake_faults_off();
    EXPECT_CODE(rpma_ep_next_conn_req(w.h.ep, NULL, &w.h.req), 0);
}

static int conn_wait(void) {
    struct rpma_cq *cq = NULL;
    return rpma_conn_wait(w.h.conn, 0, &cq, NULL);
}

static int cq_wait(void) {
    return rpma_cq_wait(world_cq(&w));
}

#define EXPECT_WAIT(wait, error, code)           \
    do {                                         \
        fake_fail("ibv_get_cq_event", 1, error); \
        EXPECT_CODE(wait(), code);               \
        fake_faults_off();                       \
    } while (false)

TEST_THAT(C2) {
    assert_true(world_conn(&w, &outgoing));
    EXPECT_WAIT(cq_wait, EIO, RPMA_E_PROVIDER);
    EXPECT_WAIT(cq_wait, EINTR, RPMA_E_NO_COMPLETION);
    EXPECT_WAIT(cq_wait, EAGAIN, RPMA_E_NO_COMPLETION);
    world_drop(&w);
    assert_true(world_conn(&w, &(const struct shape){.shared = true}));
    EXPECT_WAIT(conn_wait, EIO, RPMA_E_PROVIDER);
    EXPECT_WAIT(conn_wait, EINTR, RPMA_E_NO_COMPLETION);
    EXPECT_WAIT(conn_wait, EAGAIN, RPMA_E_NO_COMPLETION);
}

int main(int argc, char **argv) {
    unit_leaves_errno_out = true;
    return unit_main(argc, argv);
}
