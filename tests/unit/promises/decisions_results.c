// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// decisions_results.c -- E: arguments and results; F: the log; resources

#include "decisions.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

static const struct shape outgoing = {0};

TEST_THAT(E1) {
    uint32_t size = 0;
    assert_true(world_peer(&w));
    MUST(rpma_srq_cfg_new(&w.h.srq_cfg));
    MUST(rpma_srq_cfg_get_rq_size(w.h.srq_cfg, &size));
    EXPECT_EQUAL("rq_size", size, 100);
    MUST(rpma_srq_cfg_get_rcq_size(w.h.srq_cfg, &size));
    EXPECT_EQUAL("rcq_size", size, 100);
    MUST(rpma_srq_new(w.h.peer, NULL, &w.h.srq));
    EXPECT_EQUAL("max_wr", fake_last("ibv_create_srq")->srq.attr.max_wr, 100);
    EXPECT_EQUAL("cqe", fake_last("ibv_create_cq")->create_cq.cqe, 100);
}

TEST_THAT(E2) {
    EXPECT_CODE(rpma_mr_advise(NULL, 0, 8, IBV_ADVISE_MR_ADVICE_PREFETCH, 0), RPMA_E_INVAL);
}

TEST_THAT(E3) {
    struct ibv_context *const before = (struct ibv_context *)&w, *context = before;
    fake_device()->no_device = true;
    EXPECT_CODE(rpma_utils_get_ibv_context("0.0.0.0", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context),
                RPMA_E_PROVIDER);
    EXPECT_EQUAL("context is untouched", context == before, 1);
}

#define EXPECT_UNTOUCHED(member, call)                                   \
    do {                                                                 \
        void *const before = w.memory;                                   \
        w.h.member = before;                                             \
        decisions_without_memory();                                      \
        EXPECT_CODE(call, RPMA_E_NOMEM);                                 \
        fake_faults_off();                                               \
        EXPECT_EQUAL(#call " leaves " #member, w.h.member == before, 1); \
        w.h.member = NULL;                                               \
    } while (false)

TEST_THAT(E4) {
    assert_true(world_peer(&w));
    EXPECT_UNTOUCHED(cfg, rpma_conn_cfg_new(&w.h.cfg));
    EXPECT_UNTOUCHED(srq_cfg, rpma_srq_cfg_new(&w.h.srq_cfg));
    EXPECT_UNTOUCHED(srq, rpma_srq_new(w.h.peer, NULL, &w.h.srq));
}

TEST_THAT(E5) {
    enum rpma_conn_event event = RPMA_CONN_LOST; // must not be read
    assert_true(world_conn(&w, &outgoing));
    fake_cm_event(world_event_fd(&w), RDMA_CM_EVENT_ADDR_CHANGE, NULL, 0);
    unit_begin();
    EXPECT_CODE(rpma_conn_next_event(w.h.conn, &event), RPMA_E_UNKNOWN);
    EXPECT_EQUAL("the log names the CM event",
                 strstr(logged_text(), "RDMA_CM_EVENT_ADDR_CHANGE") != NULL, 1);
    EXPECT_EQUAL("the log tells the caller's variable",
                 strstr(logged_text(), rpma_utils_conn_event_2str(event)) != NULL, 0);
}

TEST_THAT(E6) {
    struct rpma_cq *const before = (struct rpma_cq *)&w, *cq = before;
    bool is_rcq = true;
    assert_true(world_conn(&w, &(const struct shape){.shared = true, .rcq_size = 10}));
    fake_notify(world_qp(&w)->send_cq);
    fake_fail("ibv_req_notify_cq", 1, EIO);
    EXPECT_CODE(rpma_conn_wait(w.h.conn, 0, &cq, &is_rcq), RPMA_E_PROVIDER);
    EXPECT_EQUAL("cq is untouched", cq == before, 1);
    EXPECT_EQUAL("is_rcq is untouched", is_rcq, true);
}

TEST_THAT(E7) {
    struct rpma_srq *srq = NULL;
    assert_true(world_peer(&w) && world_cfg(&w, &(const struct shape){.srq = true}));
    EXPECT_CODE(rpma_conn_cfg_set_srq(w.h.cfg, NULL), 0);
    MUST(rpma_conn_cfg_get_srq(w.h.cfg, &srq));
    EXPECT_EQUAL("the configuration has a queue", srq != NULL, 0);
}

TEST_THAT(E10) {
    const struct shape conflict = {.shared = true, .srq = true, .srq_rcq_size = 10};
    assert_true(world_peer(&w) && world_cfg(&w, &conflict));
    unit_begin();
    EXPECT_CODE(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req),
                RPMA_E_INVAL);
    EXPECT_CALLS("");
}

TEST_THAT(E11) {
    struct ibv_context *context = NULL;
    fake_device()->addresses = 2;
    assert_true(world_peer(&w));
    fake_fail("rdma_resolve_addr", 1, ENETUNREACH);
    EXPECT_CODE(rpma_conn_req_new(w.h.peer, "two", WORLD_PORT, NULL, &w.h.req), 0);
    EXPECT_EQUAL("the second address is used",
                 fake_addr_is(fake_last("rdma_resolve_addr")->resolve.addr, 1), 1);
    fake_faults_off();
    fake_fail("rdma_bind_addr", 1, EADDRNOTAVAIL);
    EXPECT_CODE(rpma_ep_listen(w.h.peer, "two", WORLD_PORT, &w.h.ep), 0);
    fake_faults_off();
    fake_fail("rdma_bind_addr", 1, EADDRNOTAVAIL);
    EXPECT_CODE(rpma_utils_get_ibv_context("two", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context), 0);
}

TEST_THAT(E12) {
    errno = EDOM;
    EXPECT_CODE(rpma_peer_new(fake_context(0), &w.h.peer), 0);
    EXPECT_EQUAL("success cleared errno", errno == 0, 0);
    fake_fail("ibv_reg_mr", 1, EIO);
    EXPECT_CODE(rpma_mr_reg(w.h.peer, w.memory, 8, RPMA_MR_USAGE_SEND, &w.h.mr),
                RPMA_E_PROVIDER);
    EXPECT_EQUAL("errno after a failure", errno, EIO);
    fake_faults_off();
    fake_fail("ibv_dealloc_pd", 1, EBUSY); // returns its error number
    EXPECT_CODE(rpma_peer_delete(&w.h.peer), RPMA_E_PROVIDER);
    EXPECT_EQUAL("errno is what a verb returned", errno == EBUSY, 1);
}

// F: the log.

TEST_THAT(F1) {
    const uint64_t addr = 0x123456789abcdef0;
    unsigned char desc[21];
    assert_true(world_conn(&w, &outgoing));
    world_descriptor(desc, addr, 64, WORLD_REMOTE_RKEY, WORLD_EVERY_USAGE);
    MUST(rpma_mr_remote_delete(&w.h.remote));
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w.h.remote));
    fake_fail("ibv_post_send", 1, EIO);
    unit_begin();
    EXPECT_CODE(
        rpma_read(w.h.conn, w.h.mr, 0, w.h.remote, 0, 8, RPMA_F_COMPLETION_ALWAYS, NULL),
        RPMA_E_PROVIDER);
    const bool whole = strstr(logged_text(), "123456789abcdef0") != NULL;
    EXPECT_EQUAL("cut addresses in the log",
                 !whole && strstr(logged_text(), "9abcdef0") != NULL, 0);
}

TEST_THAT(F2) {
    struct ibv_context *context = NULL;
    unit_begin();
    fake_fail("getaddrinfo", 1, EIO);
    fake_fail("rdma_getaddrinfo", 1, EIO);
    EXPECT_CODE(rpma_utils_get_ibv_context("here", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context),
                RPMA_E_PROVIDER);
    fake_faults_off();
    fake_fail("rdma_bind_addr", 1, EIO);
    EXPECT_CODE(rpma_utils_get_ibv_context("here", RPMA_UTIL_IBV_CONTEXT_LOCAL, &context),
                RPMA_E_PROVIDER);
    EXPECT_EQUAL("NULL in the log", strstr(logged_text(), "(null)") != NULL, 0);
}

TEST_THAT(F3) {
    MUST(rpma_peer_new(fake_context(0), &w.h.peer));
    fake_fail("ibv_dealloc_pd", 1, EBUSY);
    unit_begin();
    errno = EDOM;
    EXPECT_CODE(rpma_peer_delete(&w.h.peer), RPMA_E_PROVIDER);
    EXPECT_EQUAL("the log has the error number of the verb",
                 strstr(logged_text(), strerror(EBUSY)) != NULL, 1);
}

TEST_THAT(F4) {
    EXPECT_EQUAL("openlog() is called", fake_library_imports("openlog"), 0);
    EXPECT_EQUAL("closelog() is called", fake_library_imports("closelog"), 0);
}

// Only a big-endian machine can tell the difference.
TEST_THAT(F5) {
    unsigned char desc[21];
    world_descriptor(desc, 0x0102030405060708, 0x1112131415161718, 0x21222324, 1);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w.h.remote));
    EXPECT_EQUAL("the log has wire order",
                 strstr(logged_text(), "0x807060504030201") != NULL ||
                     strstr(logged_text(), "0x24232221") != NULL,
                 0);
}

static _Atomic unsigned heard[2];

static void hear(enum rpma_log_level level, const char *file_name, const int line_no,
                 const char *function_name, const char *message_format, ...) {
    (void)level, (void)file_name, (void)line_no, (void)function_name, (void)message_format;
    heard[0]++;
}

static void hear_too(enum rpma_log_level level, const char *file_name, const int line_no,
                     const char *function_name, const char *message_format, ...) {
    (void)level, (void)file_name, (void)line_no, (void)function_name, (void)message_format;
    heard[1]++;
}

static void *switch_functions(void *stop) {
    for (unsigned i = 0; !*(_Atomic bool *)stop || i < 2; i++)
        (void)rpma_log_set_function(i % 2 ? hear : hear_too);
    return NULL;
}

// Every message reaches one of the log functions, even while they change.
TEST_THAT(F6) {
    enum { MESSAGES = 20000 };
    _Atomic bool stop = false;
    pthread_t thread;
    const unsigned char desc[1] = {0};
    struct rpma_mr_remote *remote = NULL;
    heard[0] = heard[1] = 0;
    (void)rpma_log_set_function(hear);
    assert_int_equal(pthread_create(&thread, NULL, switch_functions, &stop), 0);
    for (int i = 0; i < MESSAGES; i++)
        (void)rpma_mr_remote_from_descriptor(desc, sizeof(desc), &remote);
    stop = true;
    pthread_join(thread, NULL);
    EXPECT_EQUAL("messages", heard[0] + heard[1], MESSAGES);
}

TEST_THAT(resources) {
    assert_true(world_conn(&w, &outgoing));
    struct rpma_conn *first = w.h.conn;
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &w.h.req));
    unit_begin();
    EXPECT_CODE(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn), 0);
    EXPECT_EQUAL("registrations by another connection", fake_count("ibv_reg_mr"), 0);
    MUST(rpma_conn_delete(&first));
}
