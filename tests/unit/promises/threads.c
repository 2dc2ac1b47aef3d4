// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// threads.c -- several threads do what the manual allows, with objects of their own beside the
// shared ones; ThreadSanitizer watches
//
// The allocator is not hooked and the fakes are quiet: their locks would put calls in an order
// that the library alone does not give them. CMocka's assertions belong to the main thread, so
// the others CHECK().

#include "world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 40 };
enum { EVENTS = 100 }; // for each thread; more than the library acknowledges at once

static atomic_uint messages; // that the library logged

static void (*working)(int number);
static pthread_barrier_t start;
static const char *_Atomic failure;

#define CHECK(condition) check(condition, #condition)
static void check(bool holds, const char *condition) {
    const char *none = NULL;
    if (!holds)
        atomic_compare_exchange_strong(&failure, &none, condition);
}

static void *run(void *number) {
    pthread_barrier_wait(&start);
    working((int)(intptr_t)number);
    return NULL;
}

// All threads begin at once with their number; returns when the last has ended.
static void in_threads(void (*work)(int number)) {
    pthread_t threads[THREADS];
    working = work;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    if (failure)
        fail_msg("in a thread: %s", failure);
}

static void count_message(enum rpma_log_level level, const char *file_name, const int line_no,
                          const char *function_name, const char *message_format, ...) {
    (void)level, (void)file_name, (void)line_no, (void)function_name, (void)message_format;
    messages++;
}

// Makes peer, regions and, with a shape, configurations; switches the record off until the end.
static void begin(const struct shape *shape) {
    failure = NULL;
    messages = 0;
    assert_true(world_peer(&w) && (!shape || (world_cfg(&w, shape))));
    (void)rpma_log_set_function(count_message);
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
    fake_quiet(true);
}

static void end(void) {
    fake_quiet(false);
    world_drop(&w);
}

// Connects, takes the event, and returns the established connection.
static struct rpma_conn *established(struct rpma_conn_req *req) {
    struct rpma_conn *conn = NULL;
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    int fd = -1;
    CHECK(rpma_conn_req_connect(&req, NULL, &conn) == 0);
    CHECK(rpma_conn_get_event_fd(conn, &fd) == 0);
    fake_cm_event(fd, RDMA_CM_EVENT_ESTABLISHED, "hello", 6);
    CHECK(rpma_conn_next_event(conn, &event) == 0 && event == RPMA_CONN_ESTABLISHED);
    return conn;
}

static struct rpma_conn *connected(void) {
    struct rpma_conn_req *req = NULL;
    CHECK(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &req) == 0);
    CHECK(rpma_conn_req_recv(req, w.h.mr, 0, 8, NULL) == 0);
    struct rpma_conn *conn = established(req);
    CHECK(rpma_conn_apply_remote_peer_cfg(conn, w.h.pcfg) == 0);
    return conn;
}

// Posts each operation once.
static void post_everything(struct rpma_conn *conn) {
    const int flags = RPMA_F_COMPLETION_ALWAYS;
    struct rpma_mr_local *mr = w.h.mr;
    struct rpma_mr_remote *remote = w.h.remote;
    CHECK(rpma_read(conn, mr, 0, remote, 0, 8, flags, NULL) == 0);
    CHECK(rpma_write(conn, remote, 0, mr, 0, 8, flags, NULL) == 0);
    CHECK(rpma_write_with_imm(conn, remote, 0, mr, 0, 8, flags, 1, NULL) == 0);
    CHECK(rpma_atomic_write(conn, remote, 8, "7 bytes", flags, NULL) == 0);
    CHECK(rpma_write_atomic(conn, remote, 8, mr, 0, flags, NULL) == 0);
    CHECK(rpma_flush(conn, remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, flags, NULL) == 0);
    CHECK(rpma_flush(conn, remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, flags, NULL) == 0);
    CHECK(rpma_send(conn, mr, 0, 8, flags, NULL) == 0);
    CHECK(rpma_send_with_imm(conn, mr, 0, 8, flags, 1, NULL) == 0);
    CHECK(rpma_recv(conn, mr, 0, 8, NULL) == 0);
}

// ---- peers and regions ---------------------------------------------------------------------

static void use_regions(int number) {
    unsigned char desc[21], *part = w.memory + number * 64;
    for (int i = 0; i < ROUNDS; i++) {
        struct rpma_mr_local *mr = NULL;
        struct rpma_mr_remote *remote = NULL;
        size_t size = 0;
        CHECK(rpma_mr_reg(w.h.peer, part, 64, WORLD_EVERY_USAGE, &mr) == 0);
        CHECK(rpma_mr_advise(mr, 0, 8, IBV_ADVISE_MR_ADVICE_PREFETCH, 0) == 0);
        CHECK(rpma_mr_get_descriptor(mr, desc) == 0);
        CHECK(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &remote) == 0);
        CHECK(rpma_mr_remote_get_size(remote, &size) == 0 && size == 64);
        CHECK(rpma_mr_get_size(w.h.mr, &size) == 0 && size == sizeof(w.memory)); // shared
        CHECK(rpma_mr_get_descriptor(w.h.mr, desc) == 0);
        CHECK(rpma_mr_remote_get_size(w.h.remote, &size) == 0 && size == WORLD_REMOTE_SIZE);
        CHECK(rpma_mr_remote_delete(&remote) == 0);
        CHECK(rpma_mr_dereg(&mr) == 0);
    }
}

static void use_device(int number) {
    const enum rpma_util_ibv_context_type type =
        number % 2 ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE;
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_context *context = NULL;
        struct rpma_peer *peer = NULL;
        int odp = -1;
        CHECK(rpma_utils_get_ibv_context(WORLD_ADDRESS, type, &context) == 0);
        CHECK(rpma_utils_ibv_context_is_odp_capable(context, &odp) == 0 && odp == 0);
        CHECK(rpma_peer_new(context, &peer) == 0);
        CHECK(rpma_peer_delete(&peer) == 0);
    }
}

// ---- configurations ------------------------------------------------------------------------

static void use_configurations(int number) {
    const uint32_t mine = 100 + (uint32_t)number;
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t size = 0;
        int timeout = 0;
        bool flag = false;
        struct rpma_srq *srq = NULL;
        CHECK(rpma_conn_cfg_set_cq_size(w.h.cfg, mine) == 0);
        CHECK(rpma_conn_cfg_get_cq_size(w.h.cfg, &size) == 0 && size >= 100);
        CHECK(rpma_conn_cfg_set_rcq_size(w.h.cfg, mine) == 0);
        CHECK(rpma_conn_cfg_set_sq_size(w.h.cfg, mine) == 0);
        CHECK(rpma_conn_cfg_set_rq_size(w.h.cfg, mine) == 0);
        CHECK(rpma_conn_cfg_set_timeout(w.h.cfg, (int)mine) == 0);
        CHECK(rpma_conn_cfg_get_timeout(w.h.cfg, &timeout) == 0 && timeout >= 100);
        CHECK(rpma_conn_cfg_set_compl_channel(w.h.cfg, number % 2) == 0);
        CHECK(rpma_conn_cfg_set_srq(w.h.cfg, number % 2 ? w.h.srq : NULL) == 0);
        CHECK(rpma_srq_cfg_set_rq_size(w.h.srq_cfg, mine) == 0);
        CHECK(rpma_srq_cfg_set_rcq_size(w.h.srq_cfg, mine) == 0);
        CHECK(rpma_srq_cfg_get_rq_size(w.h.srq_cfg, &size) == 0 && size >= 10);
        CHECK(rpma_srq_new(w.h.peer, w.h.srq_cfg, &srq) == 0);
        CHECK(rpma_peer_cfg_set_direct_write_to_pmem(w.h.pcfg, true) == 0);
        CHECK(rpma_peer_cfg_get_direct_write_to_pmem(w.h.pcfg, &flag) == 0 && flag);
        CHECK(rpma_srq_delete(&srq) == 0);
        struct rpma_conn_req *req = NULL;
        CHECK(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &req) == 0);
        CHECK(rpma_conn_req_delete(&req) == 0);
    }
}

// ---- connections ---------------------------------------------------------------------------

static void connect_and_flush(int number) {
    (void)number;
    struct rpma_conn *conn = connected();
    CHECK(rpma_flush(conn, w.h.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT,
                     RPMA_F_COMPLETION_ALWAYS, NULL) == 0);
    CHECK(rpma_conn_disconnect(conn) == 0);
    CHECK(rpma_conn_delete(&conn) == 0);
}

// The first thread makes the flush target, and all others use it.
static void connections_race_for_the_flush_target(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        begin(NULL);
        fake_quiet(i % 2); // the registrations are counted in every other round
        unit_begin();
        in_threads(connect_and_flush);
        if (i % 2 == 0)
            assert_int_equal(fake_count("ibv_reg_mr"), 1);
        end();
    }
}

static void use_own_connection(int number) {
    const struct ibv_wc sent = {.wr_id = (uint64_t)number, .status = IBV_WC_SUCCESS};
    struct rpma_conn *conn = connected();
    struct rpma_cq *cq = NULL;
    uint32_t qp_num = 0;
    CHECK(rpma_conn_get_cq(conn, &cq) == 0);
    CHECK(rpma_conn_get_qp_num(conn, &qp_num) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_wc wc = {0};
        post_everything(conn);
        fake_complete(fake_qp(qp_num)->send_cq, &sent);
        CHECK(rpma_cq_wait(cq) == 0);
        CHECK(rpma_cq_get_wc(cq, 1, &wc, NULL) == 0 && wc.wr_id == sent.wr_id);
    }
    CHECK(rpma_conn_delete(&conn) == 0);
}

static void accept_and_reject(int number) {
    char port[16];
    struct rpma_ep *ep = NULL;
    int fd = -1;
    snprintf(port, sizeof(port), "%d", 7204 + number);
    CHECK(rpma_ep_listen(w.h.peer, WORLD_ADDRESS, port, &ep) == 0);
    CHECK(rpma_ep_get_fd(ep, &fd) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct rpma_conn_req *req = NULL;
        fake_cm_event(fd, RDMA_CM_EVENT_CONNECT_REQUEST, "hello", 6);
        CHECK(rpma_ep_next_conn_req(ep, w.h.cfg, &req) == 0);
        if (i % 2) {
            CHECK(rpma_conn_req_delete(&req) == 0);
            continue;
        }
        struct rpma_conn *conn = established(req);
        CHECK(rpma_conn_delete(&conn) == 0);
    }
    CHECK(rpma_ep_shutdown(&ep) == 0);
}

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
        post_everything(shared_conn);
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

static void connection_is_shared(void **state) {
    (void)state;
    unsigned char desc[21];
    begin(NULL);
    // A misaligned region: the threads race for the one warning of the connection as well.
    MUST(rpma_mr_remote_delete(&w.h.remote));
    world_descriptor(desc, WORLD_REMOTE_ADDR + 4, WORLD_REMOTE_SIZE, WORLD_REMOTE_RKEY,
                     WORLD_EVERY_USAGE);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w.h.remote));
    shared_conn = connected();
    MUST(rpma_conn_get_cq(shared_conn, &shared_cq));
    in_threads(use_shared_connection);
    assert_int_equal(messages, 1);
    MUST(rpma_conn_delete(&shared_conn));
    end();
}

// ---- one completion channel ----------------------------------------------------------------

static struct ibv_cq *queues[2]; // the same one twice, or those that share a channel

static void wait_on_queue(int number) {
    for (int i = 0; i < EVENTS; i++) {
        fake_notify(queues[0]);
        CHECK(rpma_cq_wait(shared_cq) == 0);
        if (number % 2)
            CHECK(rpma_conn_get_cq(shared_conn, &(struct rpma_cq *){NULL}) == 0);
    }
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

static void events_are_shared(void (*wait)(int number), const struct shape *shape) {
    int fd = -1;
    begin(shape);
    shared_conn = connected();
    MUST(rpma_conn_get_cq(shared_conn, &shared_cq));
    MUST(shape ? rpma_conn_get_compl_fd(shared_conn, &fd) : rpma_cq_get_fd(shared_cq, &fd));
    for (unsigned i = 0; i < 2; i++)
        queues[i] = fake_cq_on(fd, shape ? i : 0);
    in_threads(wait);
    fake_quiet(false);
    for (unsigned i = 0; i < 2; i++)
        assert_true(fake_unacked(queues[i]) < 64); // the deletion acknowledges the rest
    MUST(rpma_conn_delete(&shared_conn));          // a lost event would be a misuse here
    assert_string_equal(fake_misuses(), "");
    end();
}

static void events_of_a_queue_are_shared(void **state) {
    (void)state;
    events_are_shared(wait_on_queue, NULL);
}

static void events_of_a_channel_are_shared(void **state) {
    (void)state;
    events_are_shared(wait_on_channel, &(const struct shape){.shared = true, .rcq_size = 10});
}

// ---- one shared receive queue --------------------------------------------------------------

static void use_receive_queue(int number) {
    (void)number;
    struct rpma_cq *rcq = NULL;
    struct rpma_conn_req *req = NULL;
    const struct rpma_receive receives[2] = {{.local = {w.h.mr, 0, 8}}};
    CHECK(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &req) == 0);
    struct rpma_conn *conn = established(req);
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_wc wc;
        CHECK(rpma_srq_recv(w.h.srq, w.h.mr, 0, 8, NULL) == 0);
        CHECK(rpma_srq_recv_many(w.h.srq, receives, LENGTH(receives), NULL) == 0);
        CHECK(rpma_srq_get_rcq(w.h.srq, &rcq) == 0 && rcq != NULL);
        CHECK(rpma_cq_get_wc(rcq, 1, &wc, NULL) == RPMA_E_NO_COMPLETION);
    }
    CHECK(rpma_conn_delete(&conn) == 0);
}

static void receive_queue_is_shared(void **state) {
    (void)state;
    begin(&(const struct shape){.srq = true, .srq_rcq_size = 10});
    in_threads(use_receive_queue);
    end();
}

// ---- the events of one device
// ----------------------------------------------------------------

static atomic_int deleting; // threads that still do

// A deletion waits until the event about its queue is acknowledged, which
// rpma_peer_next_event() does before it returns.
static void take_events_or_delete(int number) {
    struct rpma_peer_event event;
    if (number == 0) {
        while (deleting > 0)
            if (rpma_peer_next_event(w.h.peer, &event) == 0)
                CHECK(event.type == RPMA_PEER_EVENT_CQ_ERROR && event.ibv_object != NULL);
        return;
    }
    for (int i = 0; i < ROUNDS; i++) {
        struct rpma_cq *cq = NULL;
        struct ibv_cq *queue = NULL;
        CHECK(rpma_cq_new(w.h.peer, NULL, &cq) == 0);
        CHECK(rpma_cq_get_ibv_cq(cq, &queue) == 0);
        for (int n = 0; n < 3; n++)
            fake_async_event(fake_context(0), IBV_EVENT_CQ_ERR, queue, 0);
        CHECK(rpma_cq_delete(&cq) == 0);
    }
    deleting--;
}

static void events_name_what_others_delete(void **state) {
    (void)state;
    begin(NULL);
    world_nonblocking(fake_context(0)->async_fd);
    deleting = THREADS - 1;
    in_threads(take_events_or_delete);
    end();
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

static void log_settings_change(void **state) {
    (void)state;
    begin(NULL);
    heard[0] = heard[1] = 0;
    MUST(rpma_log_set_function(hear));
    in_threads(log_or_change);
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR);
    end();
}

// ---- each thread with objects of its own ---------------------------------------------------

struct job {
    void (*work)(int number);
    const struct shape *shape; // of h.cfg; NULL: there is none
};

static void all_do(void **state) {
    const struct job *job = *state;
    begin(job->shape);
    in_threads(job->work);
    end();
}

#define JOB(name, work, shape)                                   \
    {                                                            \
        name, all_do, unit_setup, unit_teardown, &(struct job) { \
            work, shape                                          \
        }                                                        \
    }

int main(void) {
    static const struct shape no_rcq = {.srq = true}; // no conflict with a shared channel
    const struct CMUnitTest tests[] = {
        JOB("regions_on_one_peer", use_regions, NULL),
        JOB("peers_on_one_device", use_device, NULL),
        JOB("configurations_are_shared", use_configurations, &no_rcq),
        TEST(connections_race_for_the_flush_target),
        JOB("connection_per_thread", use_own_connection, NULL),
        JOB("endpoint_per_thread", accept_and_reject, NULL),
        TEST(connection_is_shared),
        TEST(events_of_a_queue_are_shared),
        TEST(events_of_a_channel_are_shared),
        TEST(receive_queue_is_shared),
        TEST(events_name_what_others_delete),
        TEST(log_settings_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
