// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// interleavings.c -- two or three threads use one object, in every order of their accesses to
// shared variables, and with every value that a load may return

#include "operation.h"
#include "orders.h"

#include <stdio.h>

// The calls of one thread.
#define THREAD(name, call)   \
    static void name(void) { \
        (void)(call);        \
    }

// ---- events of a queue ---------------------------------------------------------------------

enum { ACKNOWLEDGED_AT_ONCE = 64 };

static struct ibv_cq *events(void) {
    return fake_cq_on(fixture_cq_fd(fixture_cq(&w)), 0);
}

static void wait_once(void) {
    fake_notify(events());
    (void)rpma_cq_wait(fixture_cq(&w));
}

static void wait_twice(void) {
    wait_once();
    wait_once();
}

static void wait_until(unsigned unacknowledged) {
    for (int i = 0; i < ACKNOWLEDGED_AT_ONCE && fake_unacked(events()) != unacknowledged; i++)
        wait_once();
}

static void begin_waits(void) {
    wait_until(ACKNOWLEDGED_AT_ONCE - 2);
}

// If an acknowledgement is lost, ibv_destroy_cq() waits for ever.
static void end_waits(void) {
    wait_until(0);
    record("%u open%s", fake_unacked(events()), fake_misuses());
}

// ---- flushes and the capabilities of the peer ----------------------------------------------

static struct rpma_peer_cfg *other; // with capabilities, without direct write to PMem

static int flush(enum rpma_flush_type type) {
    return rpma_flush(w.h.conn, w.h.remote, 0, 8, type, RPMA_F_COMPLETION_ALWAYS, NULL);
}

static void begin_unadvertised(void) {
    fixture_apply(&w, UNADVERTISED);
}

static void begin_batch(void) {
    const struct rpma_work work = operation_of(&w, RPMA_WORK_FLUSH);
    fixture_apply(&w, SERVES);
    if (!w.h.batch)
        MUST(rpma_batch_new(w.h.conn, 2, &w.h.batch));
    MUST(rpma_batch_reset(w.h.batch));
    MUST(rpma_batch_add(w.h.batch, &work));
    fixture_apply(&w, SERVES); // so that the next post chooses the methods again
}

THREAD(flush_first, flush(RPMA_FLUSH_TYPE_VISIBILITY))
THREAD(apply, rpma_conn_apply_remote_peer_cfg(w.h.conn, w.h.pcfg))
THREAD(apply_other, rpma_conn_apply_remote_peer_cfg(w.h.conn, other))

static void add_to_batch(void) {
    const struct rpma_work work = operation_of(&w, RPMA_WORK_FLUSH);
    (void)rpma_batch_add(w.h.batch, &work);
}

THREAD(post, rpma_batch_post(w.h.batch, NULL))

static void record_notices(void) {
    record("%u notices", logged_count(RPMA_LOG_LEVEL_NOTICE));
}

static void record_result(int code) {
    const struct logged_line *line = logged_line(RPMA_LOG_LEVEL_ERROR, 0);
    const char *message = line ? strstr(line->message, "the ") : "";
    record("%s %.36s", contract_code_name(code), message);
}

static void record_flush(void) {
    logged_forget();
    record_result(flush(RPMA_FLUSH_TYPE_PERSISTENT));
}

static void record_batch(void) {
    logged_forget();
    record_result(rpma_batch_post(w.h.batch, NULL));
}

// ---- one warning, users of a queue ---------------------------------------------------------

static struct rpma_mr_remote *misaligned;
static const struct shape plain = {.name = "plain", .shared_cq = 8};

static void begin_without_warning(void) {
    MUST(rpma_conn_delete(&w.h.conn));
    (void)(fixture_make_req(&w, &plain) && fixture_connect(&w, &plain));
}

THREAD(misalign,
       rpma_atomic_write(w.h.conn, misaligned, 0, "8 bytes", RPMA_F_COMPLETION_ALWAYS, NULL))

static void record_warnings(void) {
    record("%u warnings", logged_count(RPMA_LOG_LEVEL_WARNING));
}

static struct rpma_conn_req *request;

static int new_request(struct rpma_conn_req **req) {
    return rpma_conn_req_new(w.h.peer, FIXTURE_ADDRESS, FIXTURE_PORT, w.h.cfg, req);
}

static void begin_user(void) {
    MUST(new_request(&w.h.req));
}

THREAD(leave_queue, rpma_conn_req_delete(&w.h.req))
THREAD(join_queue, new_request(&request))

static void record_users(void) {
    (void)rpma_cq_delete(&w.h.shared_cq);
    record("%s", strstr(logged_text(), "its connections (2)") ? "2 users" : logged_text());
    (void)rpma_conn_req_delete(&request);
}

// ---- a configuration that changes while a request is made ----------------------------------

static int request_code;

// A shared completion channel cannot have a queue of the program.
static void begin_shared(void) {
    MUST(rpma_conn_cfg_set_cq(w.h.cfg, NULL));
    MUST(rpma_conn_cfg_set_compl_channel(w.h.cfg, true));
}

THREAD(request_shared, request_code = new_request(&request))
THREAD(set_shared_cq, rpma_conn_cfg_set_cq(w.h.cfg, w.h.shared_cq))

static void record_queue(void) {
    const struct fake_call *made = fake_last("rdma_create_qp_ex");
    struct ibv_cq *program_cq = NULL;
    (void)rpma_cq_get_ibv_cq(w.h.shared_cq, &program_cq);
    record("%s, %s queue", contract_code_name(request_code),
           !made                            ? "no"
           : made->qp.send_cq == program_cq ? "the program's"
                                            : "its own");
    (void)rpma_conn_req_delete(&request);
    (void)rpma_conn_cfg_set_compl_channel(w.h.cfg, false);
}

// ---- an object of the program at the address of one of librpma ----------------------------

static struct ibv_comp_channel *channel;
static struct ibv_cq *cq_of_program;
static struct ibv_srq *srq_of_program;
static struct rpma_cq *deleted_cq;
static struct rpma_srq *deleted_srq;
static struct rpma_peer_event event_of_program;

static void begin_deletion(void) {
    fake_device()->reuses = true;
    channel = ibv_create_comp_channel(fake_context(0));
    cq_of_program = NULL;
    srq_of_program = NULL;
    MUST(rpma_cq_new(w.h.peer, NULL, &deleted_cq));
    MUST(rpma_srq_new(w.h.peer, NULL, &deleted_srq));
}

THREAD(delete_cq, rpma_cq_delete(&deleted_cq))
THREAD(delete_srq, rpma_srq_delete(&deleted_srq))

static void take_event_about(enum ibv_event_type type, void *object) {
    fake_async_event(fake_context(0), type, object, 0);
    (void)rpma_peer_next_event(w.h.peer, &event_of_program);
}

static void make_cq(void) {
    cq_of_program = ibv_create_cq(fake_context(0), 4, NULL, channel, 0);
    take_event_about(IBV_EVENT_CQ_ERR, cq_of_program);
}

static void make_srq(void) {
    struct ibv_pd *pd = NULL;
    struct ibv_srq_init_attr attr = {.attr = {4, 1, 0}};
    (void)rpma_peer_get_ibv_pd(w.h.peer, &pd);
    srq_of_program = ibv_create_srq(pd, &attr);
    take_event_about(IBV_EVENT_SRQ_ERR, srq_of_program);
}

static void record_handle(void) {
    record(event_of_program.cq || event_of_program.srq ? "a handle" : "no handle");
    if (cq_of_program)
        (void)ibv_destroy_cq(cq_of_program);
    if (srq_of_program)
        (void)ibv_destroy_srq(srq_of_program);
    (void)rpma_cq_delete(&deleted_cq);
    (void)rpma_srq_delete(&deleted_srq);
    (void)ibv_destroy_comp_channel(channel);
    fake_device()->reuses = false;
}

// ---- the log -------------------------------------------------------------------------------

static void begin_log(void) {
    logged_start();
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_INFO);
}

THREAD(log_errors, rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR))
THREAD(log_nothing, rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED))

static void record_threshold(void) {
    enum rpma_log_level threshold = RPMA_LOG_LEVEL_DEBUG;
    (void)rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &threshold);
    logged_forget();
    (void)rpma_mr_get_size(NULL, NULL);
    record("%d: %u lines", threshold, logged_count(RPMA_LOG_LEVEL_ERROR));
    logged_start();
}

static void begin_failures(void) {
    logged_start();
    fake_syslog_forget();
    fake_fail("ibv_get_cq_event", 1, EIO);
    fake_fail("rdma_disconnect", 1, ENOSPC);
}

THREAD(fail_to_wait, rpma_cq_wait(fixture_cq(&w)))
THREAD(fail_to_disconnect, rpma_conn_disconnect(w.h.conn))

static void record_failures(void) {
    for (unsigned i = 0; i < 2; i++)
        record("%s\n", logged_line(RPMA_LOG_LEVEL_ERROR, i)->message);
    fake_faults_off();
}

THREAD(change_function, rpma_log_set_function(NULL)) // the default function: syslog

static void record_readers(void) {
    int priority;
    record("%u caught, %d in syslog", logged_count(RPMA_LOG_LEVEL_ERROR),
           *fake_syslog(&priority) != 0);
    fake_faults_off();
}

// A log function must see all values that the program stored before setting it.
static uint64_t prepared;
static const char *called;

static void log_prepared(enum rpma_log_level level, const char *file, const int line,
                         const char *function, const char *format, ...) {
    (void)level, (void)file, (void)line, (void)function, (void)format;
    stepped_access(&prepared, false);
    called = stepped_load(&prepared, prepared, __ATOMIC_RELAXED) ? "prepared" : "too early";
}

static void prepare_and_set(void) {
    stepped_access(&prepared, true);
    stepped_store(&prepared, 0, 1, __ATOMIC_RELAXED, false);
    prepared = 1;
    (void)rpma_log_set_function(log_prepared);
}

static void begin_prepared(void) {
    begin_failures();
    prepared = 0;
    called = "not called";
}

static void record_called(void) {
    record("%s", called);
    fake_faults_off();
    logged_start();
}

// ---- all scenarios ------------------------------------------------------------------------

#define WAIT_FAILS "ibv_get_cq_event() failed: Input/output error (5)\n"
#define DISCONNECT_FAILS "rdma_disconnect() failed: No space left on device (28)\n"
#define REFUSED "RPMA_E_NOSUPP the other side does not advertise di"

// clang-format off
static const struct scenario scenarios[] = {
    {"waits", begin_waits, {wait_twice, wait_twice}, end_waits, {"0 open"}},
    {"more waits", begin_waits, {wait_once, wait_once, wait_once}, end_waits, {"0 open"}},
    {"first flushes", begin_unadvertised, {flush_first, flush_first}, record_notices,
     {"1 notices"}},
    {"a first flush, new capabilities", begin_unadvertised, {flush_first, apply_other}, record_flush, {REFUSED}},
    {"new capabilities", begin_unadvertised, {apply, apply_other}, record_flush, {"0 ", REFUSED}},
    {"an addition, new capabilities", begin_batch, {add_to_batch, apply_other}, record_batch, {REFUSED}},
    {"a batch, new capabilities", begin_batch, {post, apply_other}, record_batch, {REFUSED}},
    {"misaligned writes", begin_without_warning, {misalign, misalign, misalign}, record_warnings,
     {"1 warnings"}},
    {"a request, a setting", begin_shared, {request_shared, set_shared_cq}, record_queue,
     {"0, its own queue", "RPMA_E_INVAL, no queue"}},
    {"users of a queue", begin_user, {leave_queue, join_queue}, record_users, {"2 users"}},
    {"a CQ of the program at a deleted address", begin_deletion, {delete_cq, make_cq}, record_handle,
     {"no handle"}},
    {"an SRQ of the program at a deleted address", begin_deletion, {delete_srq, make_srq}, record_handle,
     {"no handle"}},
    {"thresholds", begin_log, {log_errors, log_nothing}, record_threshold,
     {"1: 1 lines", "-1: 0 lines"}},
    {"failures", begin_failures, {fail_to_wait, fail_to_disconnect}, record_failures,
     {WAIT_FAILS DISCONNECT_FAILS, DISCONNECT_FAILS WAIT_FAILS}},
    {"a failure, a log function", begin_failures, {fail_to_wait, change_function}, record_readers,
     {"1 caught, 0 in syslog", "0 caught, 1 in syslog"}},
    {"a failure, data of a log function", begin_prepared, {fail_to_wait, prepare_and_set},
     record_called, {"prepared", "not called"}},
};
// clang-format on

TEST_THAT(every_interleaving_has_an_allowed_result) {
    unsigned char desc[21];
    fixture_conn(&w, &plain);
    MUST(rpma_peer_cfg_new(&other));
    MUST(rpma_peer_cfg_set_served_by(other, w.h.peer));
    fixture_descriptor(desc, FIXTURE_REMOTE_ADDR + 4, FIXTURE_REMOTE_SIZE, FIXTURE_REMOTE_RKEY,
                       FIXTURE_EVERY_USAGE);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &misaligned));
    for (size_t i = 0; i < LENGTH(scenarios); i++)
        in_every_order(&scenarios[i]);
    MUST(rpma_mr_remote_delete(&misaligned));
    MUST(rpma_peer_cfg_delete(&other));
}
