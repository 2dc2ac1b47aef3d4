// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// threads_shared.c -- several threads use one connection, one queue, one channel, one log

#include "threads.h"

enum { EVENTS = 100 }; // for each thread; more than the library acknowledges at once

// ---- one connection ------------------------------------------------------------------------

static struct rpma_conn *shared_conn;
static struct rpma_cq *shared_cq;

// Only one thread at a time may take events, so the first one does.
static void take_event(void) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    int fd = -1;
    CHECK(rpma_conn_get_event_fd(shared_conn, &fd) == 0);
    fake_cm_event(fd, RDMA_CM_EVENT_ESTABLISHED, "again", 6);
    CHECK(rpma_conn_next_event(shared_conn, &event) == 0 && event == RPMA_CONN_ESTABLISHED);
}

// A batch of its own for each thread.
static void post_batch(struct rpma_batch *batch) {
    const struct rpma_sge sgl[1] = {{w.h.mr, 0, 8}};
    const struct rpma_work work[] = {
        {.type = RPMA_WORK_WRITE, .remote = w.h.remote, .sgl = sgl, .nsge = 1, .flags = 1},
        {.type = RPMA_WORK_FLUSH, .remote = w.h.remote, .flush_len = 8, .flags = 1},
        {.type = RPMA_WORK_ATOMIC_WRITE, .remote = w.h.remote, .flags = 1}};
    uint32_t posted = 0;
    CHECK(rpma_batch_reset(batch) == 0);
    for (size_t i = 0; i < LENGTH(work); i++)
        CHECK(rpma_batch_add(batch, &work[i]) == 0);
    CHECK(rpma_batch_set(batch, 0, &work[1]) == 0);
    CHECK(rpma_batch_post(batch, &posted) == 0 && posted == LENGTH(work));
    CHECK(rpma_post(shared_conn, work, LENGTH(work), &posted) == 0 && posted == LENGTH(work));
}

static void use_shared_connection(int number) {
    struct rpma_batch *batch = NULL;
    CHECK(rpma_batch_new(shared_conn, 3, &batch) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        post_batch(batch);
        struct ibv_wc wc;
        struct rpma_cq *cq = NULL;
        uint32_t qp_num = 0;
        struct rpma_conn_private_data pdata;
        threads_post_everything(shared_conn);
        CHECK(rpma_cq_get_wc(shared_cq, 1, &wc, NULL) == RPMA_E_NO_COMPLETION);
        CHECK(rpma_conn_get_cq(shared_conn, &cq) == 0 && cq == shared_cq);
        CHECK(rpma_conn_get_qp_num(shared_conn, &qp_num) == 0 && qp_num != 0);
        CHECK(rpma_conn_get_private_data(shared_conn, &pdata) == 0 && pdata.len == 196);
        CHECK(rpma_conn_apply_remote_peer_cfg(shared_conn, w.h.pcfg) == 0);
        if (number == 0)
            take_event();
    }
    CHECK(rpma_batch_delete(&batch) == 0);
    CHECK(rpma_conn_disconnect(shared_conn) == 0);
}

void connection_is_shared(void **state) {
    (void)state;
    unsigned char desc[21];
    threads_begin(NULL);
    // A misaligned region: the threads race for the one warning of the connection as well.
    MUST(rpma_mr_remote_delete(&w.h.remote));
    world_descriptor(desc, WORLD_REMOTE_ADDR + 4, WORLD_REMOTE_SIZE, WORLD_REMOTE_RKEY,
                     WORLD_EVERY_USAGE);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w.h.remote));
    shared_conn = threads_connected();
    MUST(rpma_conn_get_cq(shared_conn, &shared_cq));
    in_threads(use_shared_connection);
    assert_int_equal(threads_messages, 1);
    MUST(rpma_conn_delete(&shared_conn));
    threads_end();
}

// ---- one completion channel ----------------------------------------------------------------

static struct ibv_cq *queues[2];

static void expect_all_acknowledged(void) {
    fake_quiet(false);
    const unsigned open = fake_unacked(queues[0]) + (queues[1] ? fake_unacked(queues[1]) : 0);
    assert_true(open < 2 * 64);           // the deletion acknowledges the rest
    MUST(rpma_conn_delete(&shared_conn)); // a lost event would be a misuse here
    assert_string_equal(fake_misuses(), "");
}

static void wait_on_queue(int number) {
    for (int i = 0; i < EVENTS; i++) {
        fake_notify(queues[0]);
        CHECK(rpma_cq_wait(shared_cq) == 0);
        if (number % 2)
            CHECK(rpma_conn_get_cq(shared_conn, &(struct rpma_cq *){NULL}) == 0);
    }
}

void events_of_a_queue_are_shared(void **state) {
    (void)state;
    threads_begin(NULL);
    shared_conn = threads_connected();
    MUST(rpma_conn_get_cq(shared_conn, &shared_cq));
    queues[0] = fake_cq_on(world_cq_fd(shared_cq), 0);
    queues[1] = NULL;
    in_threads(wait_on_queue);
    expect_all_acknowledged();
    threads_end();
}

static void wait_on_channel(int number) {
    for (int i = 0; i < EVENTS; i++) {
        struct rpma_cq *cq = NULL, *rcq = NULL;
        bool is_rcq = false;
        fake_notify(queues[number % 2]);
        CHECK(rpma_conn_wait(shared_conn, 0, &cq, &is_rcq) == 0);
        CHECK(rpma_conn_get_rcq(shared_conn, &rcq) == 0 && is_rcq == (cq == rcq));
    }
}

void events_of_a_channel_are_shared(void **state) {
    (void)state;
    int fd = -1;
    threads_begin(&(const struct shape){.shared = true, .rcq_size = 10});
    shared_conn = threads_connected();
    MUST(rpma_conn_get_compl_fd(shared_conn, &fd));
    for (unsigned i = 0; i < 2; i++)
        queues[i] = fake_cq_on(fd, i);
    in_threads(wait_on_channel);
    expect_all_acknowledged();
    threads_end();
}

// ---- one shared receive queue --------------------------------------------------------------

static void use_receive_queue(int number) {
    (void)number;
    struct rpma_cq *rcq = NULL;
    struct rpma_conn_req *req = NULL;
    const struct rpma_receive receives[2] = {{.local = {w.h.mr, 0, 8}}};
    CHECK(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &req) == 0);
    struct rpma_conn *conn = threads_established(req);
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_wc wc;
        CHECK(rpma_srq_recv(w.h.srq, w.h.mr, 0, 8, NULL) == 0);
        CHECK(rpma_srq_recv_many(w.h.srq, receives, LENGTH(receives), NULL) == 0);
        CHECK(rpma_srq_get_rcq(w.h.srq, &rcq) == 0 && rcq != NULL);
        CHECK(rpma_cq_get_wc(rcq, 1, &wc, NULL) == RPMA_E_NO_COMPLETION);
    }
    CHECK(rpma_conn_delete(&conn) == 0);
}

void receive_queue_is_shared(void **state) {
    (void)state;
    threads_begin(&(const struct shape){.srq = true, .srq_rcq_size = 10});
    in_threads(use_receive_queue);
    threads_end();
}

// ---- one log -------------------------------------------------------------------------------

static atomic_uint heard[2];
static _Thread_local int depth;

static void hear(enum rpma_log_level level, const char *file_name, const int line_no,
                 const char *function_name, const char *message_format, ...) {
    CHECK(level == RPMA_LOG_LEVEL_ERROR && file_name && line_no > 0);
    CHECK(strcmp(function_name, "rpma_mr_get_size") == 0 && message_format);
    heard[0]++;
}

// A log function that causes messages itself and sets the threshold.
static void hear_and_log(enum rpma_log_level level, const char *file_name, const int line_no,
                         const char *function_name, const char *message_format, ...) {
    (void)level, (void)file_name, (void)line_no, (void)function_name, (void)message_format;
    enum rpma_log_level threshold = RPMA_LOG_DISABLED;
    heard[1]++;
    CHECK(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &threshold) == 0);
    CHECK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, threshold) == 0);
    if (depth++ < 2)
        CHECK(rpma_mr_get_size(NULL, NULL) == RPMA_E_INVAL);
    depth--;
}

static void log_or_change(int number) {
    for (int i = 0; i < 10 * ROUNDS; i++) {
        if (number == 0)
            CHECK(rpma_log_set_function(i % 2 ? hear : hear_and_log) == 0);
        else if (number == 1)
            CHECK(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, i % 2 ? RPMA_LOG_LEVEL_ERROR
                                                                   : RPMA_LOG_DISABLED) == 0);
        else
            CHECK(rpma_mr_get_size(NULL, NULL) == RPMA_E_INVAL);
    }
}

void log_settings_change(void **state) {
    (void)state;
    threads_begin(NULL);
    heard[0] = heard[1] = 0;
    MUST(rpma_log_set_function(hear));
    in_threads(log_or_change);
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR);
    threads_end();
}

static void log_only(int number) {
    (void)number;
    for (int i = 0; i < ROUNDS; i++)
        CHECK(rpma_mr_get_size(NULL, NULL) == RPMA_E_INVAL);
}

void log_functions_log(void **state) {
    (void)state;
    threads_begin(NULL);
    heard[1] = 0;
    MUST(rpma_log_set_function(hear_and_log));
    in_threads(log_only);
    assert_int_equal(heard[1], THREADS * ROUNDS * 3); // the message, and two from within
    threads_end();
}
