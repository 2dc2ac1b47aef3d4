// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// threads.c -- concurrent calls of several threads that the manual allows, on their own and on
// shared objects, for ThreadSanitizer. interleavings.c checks the results.
//
// The allocator is not hooked and the fakes are quiet, because their locks would order calls
// that the library does not order. Assertions of CMocka work in the main thread only, so other
// threads use check().

#include "arguments.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 40 };

static pthread_barrier_t start;
static const char *_Atomic failure;

static void check_that(bool holds, const char *what) {
    const char *none = NULL;
    if (!holds)
        atomic_compare_exchange_strong(&failure, &none, what);
}

static void ignore(enum rpma_log_level level, const char *file_name, const int line_no,
                   const char *function_name, const char *message_format, ...) {
    (void)level, (void)file_name, (void)line_no, (void)function_name, (void)message_format;
}

// ---- functions by their names --------------------------------------------------------------

static struct rpma_work work[3];

static void call_function(const char *function, struct fixture *own, int number) {
    struct arguments a;
    (void)arguments_trigger(function, own, false);
    arguments_good(&a, function, own);
    (void)arguments_set(&a, "type", (uintptr_t)number % 2);
    if (strcmp(function, "rpma_log_set_threshold") == 0)
        (void)arguments_set(&a, "level", RPMA_LOG_LEVEL_DEBUG); // all other threads log
    (void)arguments_set(&a, "log_function", (uintptr_t)ignore);
    if (arguments_set(&a, "work", (uintptr_t)work))
        (void)arguments_set(&a, "count", LENGTH(work));
    if (strcmp(function, "rpma_conn_req_connect") == 0)
        (void)arguments_set(&a, "pdata", 0);
    if (strcmp(function, "rpma_atomic_write") == 0)
        (void)arguments_set(&a, "src", (uintptr_t) "7 bytes");
    const int code = arguments_call(&a);
    check_that(code == 0 ||
                   (code == RPMA_E_NO_COMPLETION && strcmp(function, "rpma_cq_get_wc") == 0),
               a.call->name);
}

static const struct job {
    const char *name;
    const char *shared; // functions that create the objects in the fixture of all threads
    const char *each;   // functions that each thread calls, in a fixture with these objects
    const char *first;  // called before by the first thread only, as the manual requires
    bool anew;          // each round has a new peer
} jobs[] = {
#define CFGS "rpma_conn_cfg_new rpma_srq_cfg_new rpma_cq_cfg_new rpma_ep_cfg_new "
#define CONNECT "rpma_conn_req_new rpma_conn_req_recv " ESTABLISH
#define ESTABLISH                                                        \
    "rpma_conn_req_connect rpma_conn_get_event_fd rpma_conn_next_event " \
    "rpma_conn_apply_remote_peer_cfg "
#define POST                                                                        \
    "rpma_read rpma_write rpma_write_with_imm rpma_atomic_write rpma_write_atomic " \
    "rpma_flush rpma_send rpma_send_with_imm rpma_recv rpma_post rpma_recv_many "
    {"regions_of_one_peer", "",
     "rpma_mr_get_size rpma_mr_get_descriptor rpma_mr_remote_get_size rpma_mr_advise "
     "rpma_mr_reg rpma_mr_advise rpma_mr_get_descriptor rpma_mr_get_ptr rpma_mr_dereg "
     "rpma_mr_remote_from_descriptor rpma_mr_remote_get_size rpma_mr_remote_get_key "
     "rpma_mr_remote_get_flush_type rpma_mr_remote_delete"},
    {"peers_of_one_device", "",
     "rpma_utils_get_ibv_context rpma_utils_ibv_context_is_odp_capable rpma_peer_new "
     "rpma_peer_get_ibv_pd rpma_peer_delete"},
    {"configurations_are_shared", CFGS,
     "rpma_conn_cfg_set_cq_size rpma_conn_cfg_get_cq_size rpma_conn_cfg_set_rcq_size "
     "rpma_conn_cfg_get_rcq_size rpma_conn_cfg_set_sq_size rpma_conn_cfg_get_sq_size "
     "rpma_conn_cfg_set_rq_size rpma_conn_cfg_get_rq_size rpma_conn_cfg_set_timeout "
     "rpma_conn_cfg_get_timeout rpma_conn_cfg_set_compl_channel "
     "rpma_conn_cfg_get_compl_channel rpma_conn_cfg_set_max_sge rpma_conn_cfg_set_ack_timeout "
     "rpma_conn_cfg_set_retry_count "
     "rpma_conn_cfg_set_rnr_retry_count rpma_conn_cfg_set_tos rpma_conn_cfg_set_inline_size "
     "rpma_srq_cfg_set_rq_size rpma_srq_cfg_get_rq_size rpma_srq_cfg_set_rcq_size "
     "rpma_srq_cfg_get_rcq_size rpma_srq_cfg_set_max_sge rpma_cq_cfg_set_size "
     "rpma_cq_cfg_get_size rpma_cq_cfg_set_comp_vector rpma_ep_cfg_set_backlog "
     "rpma_ep_cfg_get_backlog rpma_ep_cfg_set_ipv6_only "
     "rpma_peer_cfg_set_direct_write_to_pmem rpma_peer_cfg_get_direct_write_to_pmem "
     "rpma_peer_cfg_set_served_by rpma_peer_cfg_get_served rpma_peer_cfg_get_descriptor "
     "rpma_conn_cfg_set_source_addr rpma_conn_cfg_get_source_addr "
     "rpma_conn_cfg_set_source_port rpma_conn_cfg_get_source_port rpma_conn_cfg_set_rnr_timer "
     "rpma_srq_new rpma_srq_delete rpma_cq_new rpma_cq_delete rpma_conn_req_new "
     "rpma_conn_req_delete"},
    // The first thread creates the flush target, and all others use it.
    {"flush_target_of_one_peer", CFGS,
     CONNECT "rpma_flush rpma_conn_disconnect rpma_conn_delete", .anew = true},
    {"connection_per_thread", CFGS,
     CONNECT POST "rpma_conn_get_cq rpma_cq_wait rpma_cq_get_wc rpma_conn_delete"},
    {"endpoint_per_thread", CFGS,
     "rpma_ep_listen rpma_ep_next_conn_req rpma_conn_req_delete "
     "rpma_ep_next_conn_req " ESTABLISH "rpma_conn_delete rpma_ep_shutdown"},
    {"connection_is_shared", CFGS CONNECT,
     POST "rpma_batch_new rpma_batch_add rpma_batch_set rpma_batch_post rpma_batch_reset "
          "rpma_batch_delete rpma_cq_get_wc rpma_conn_get_cq rpma_conn_get_qp_num "
          "rpma_conn_get_local_addr rpma_conn_get_peer_addr "
          "rpma_conn_get_private_data rpma_conn_apply_remote_peer_cfg rpma_conn_get_flush_mode "
          "rpma_cq_wait rpma_cq_arm rpma_conn_get_rcq rpma_conn_disconnect",
     "rpma_conn_next_event"},
    {"channel_is_shared",
     CFGS "rpma_conn_cfg_set_compl_channel rpma_conn_cfg_set_rcq_size " CONNECT,
     "rpma_conn_wait rpma_conn_get_rcq"},
    {"receive_queue_is_shared", CFGS "rpma_srq_new rpma_conn_cfg_set_srq",
     "rpma_conn_cfg_set_srq rpma_conn_cfg_get_srq "
     "rpma_srq_recv rpma_srq_recv_many rpma_srq_get_rcq rpma_srq_set_limit "
     "rpma_conn_req_new " ESTABLISH "rpma_conn_delete"},
    {"log_settings_change", CFGS,
     "rpma_log_get_threshold rpma_conn_req_new rpma_conn_req_delete",
     "rpma_log_set_threshold rpma_log_set_function"},
};

static const struct job *job;

static void call_all(const char *functions, struct fixture *own, int number) {
    char text[2048], *rest = text;
    snprintf(text, sizeof(text), "%s", functions);
    for (char *function; (function = strsep(&rest, " "));)
        if (*function)
            call_function(function, own, number);
}

static void *call_in_rounds(void *number) {
    static _Thread_local struct fixture own;
    const int mine = (int)(intptr_t)number;
    pthread_barrier_wait(&start);
    for (int i = 0; i < (job->anew ? 1 : ROUNDS); i++) {
        own.h = w.h;
        if (mine == 0 && job->first)
            call_all(job->first, &own, mine);
        call_all(job->each, &own, mine);
    }
    return NULL;
}

// Starts all threads at once, with their number as argument, and waits for their end.
static void in_threads(void *(*work)(void *number)) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    if (failure)
        fail_msg("in a thread: %s", failure);
}

// The region is misaligned, so that threads also race for the single warning of a connection.
static void begin_job(const char *functions) {
    unsigned char desc[21];
    failure = NULL;
    assert_true(fixture_peer(&w));
    MUST(rpma_mr_remote_delete(&w.h.remote));
    fixture_descriptor(desc, FIXTURE_REMOTE_ADDR + 4, FIXTURE_REMOTE_SIZE, FIXTURE_REMOTE_RKEY,
                       FIXTURE_EVERY_USAGE);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w.h.remote));
    work[0] = (struct rpma_work){.type = RPMA_WORK_FLUSH, .remote = w.h.remote, .flush_len = 8};
    work[1] =
        (struct rpma_work){.type = RPMA_WORK_WRITE, .remote = w.h.remote, .local.mr = w.h.mr};
    work[2] = (struct rpma_work){.type = RPMA_WORK_SEND};
    for (size_t i = 0; i < LENGTH(work); i++)
        work[i].flags = RPMA_F_COMPLETION_ALWAYS;
    call_all(functions, &w, 0);
    (void)rpma_log_set_function(ignore);
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_WARNING);
    fake_quiet(true);
}

static void run_job(void **state) {
    job = *state;
    for (int i = 0; i < (job->anew ? ROUNDS : 1); i++) {
        begin_job(job->shared);
        fake_quiet(i % 2 || !job->anew); // the registrations are counted in every other round
        unit_begin();
        in_threads(call_in_rounds);
        if (job->anew && i % 2 == 0)
            assert_int_equal(fake_count("ibv_reg_mr"), 1);
        fake_quiet(false);
        (void)rpma_log_set_function(NULL);
        fixture_delete(&w);
    }
}

// ---- the events of one device --------------------------------------------------------------

static atomic_int deleting; // number of threads that still delete

// A deletion waits until rpma_peer_next_event() has acknowledged the event of the queue.
static void *take_events_or_delete(void *number) {
    struct rpma_peer_event event;
    pthread_barrier_wait(&start);
    while (!number && deleting > 0)
        if (rpma_peer_next_event(w.h.peer, &event) == 0)
            check_that(event.type == RPMA_PEER_EVENT_CQ_ERROR && event.ibv_object, "the event");
    for (int i = 0; number && i < ROUNDS; i++) {
        struct rpma_cq *cq = NULL;
        struct ibv_cq *queue = NULL;
        check_that(rpma_cq_new(w.h.peer, NULL, &cq) == 0, "rpma_cq_new");
        check_that(rpma_cq_get_ibv_cq(cq, &queue) == 0, "rpma_cq_get_ibv_cq");
        for (int n = 0; n < 3; n++)
            fake_async_event(fake_context(0), IBV_EVENT_CQ_ERR, queue, 0);
        check_that(rpma_cq_delete(&cq) == 0, "rpma_cq_delete");
    }
    deleting -= number != NULL;
    return NULL;
}

static void event_is_handled_before_or_after_its_deletion(void **state) {
    (void)state;
    begin_job("");
    fixture_nonblocking(fake_context(0)->async_fd);
    deleting = THREADS - 1;
    in_threads(take_events_or_delete);
    fake_quiet(false);
    fixture_delete(&w);
}

int main(void) {
    struct CMUnitTest tests[LENGTH(jobs) + 1] = {
        TEST(event_is_handled_before_or_after_its_deletion)};
    for (size_t i = 0; i < LENGTH(jobs); i++)
        tests[i + 1] = (struct CMUnitTest){jobs[i].name, run_job, unit_setup, unit_teardown,
                                           (void *)(uintptr_t)&jobs[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
