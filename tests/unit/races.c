// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// races.c -- several threads use shared objects at full speed. Lost events and mixed-up
// failures show in numbers, also without ThreadSanitizer.
//
// The locks of the fakes would serialize the threads, so this executable replaces the calls on
// the way of an event by functions that only count or fail. Its functions take precedence over
// those of the fakes and the C library.

#include "world.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

// A test ends after EVENTS events if the threads have taken turns CHANGES times; where they
// hardly take turns, after AT_LAST events.
enum { THREADS = 4, EVENTS = 2 * 1000 * 1000, CHANGES = 500, AT_LAST = 50 * EVENTS };
// A failure takes far longer, because it is logged.
enum { FAILURES = 30 * 1000, FAILURES_AT_LAST = 20 * FAILURES };
enum { SIGNALS = 2000 };
// Error numbers without a name, of a size that no other number in a message has.
#define ERROR_BASE 1900000000

static struct world w;
static struct rpma_cq *cq;
static struct ibv_cq *queue;
static int (*arm)(struct ibv_cq *, int);
static atomic_uint taken, changes, acknowledged, wrong;
static _Atomic pthread_t last; // the thread that took the previous event
static _Thread_local int own_error;
static pthread_barrier_t start;

// ---- the replaced functions ----------------------------------------------------------------

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **fired,
                     void **cq_context) {
    const pthread_t self = pthread_self();
    if (atomic_exchange(&last, self) != self)
        changes++;
    taken++;
    *fired = queue;
    *cq_context = channel;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *of, unsigned int nevents) {
    wrong += of != queue;
    acknowledged += nevents;
}

static int answer(struct ibv_cq *of, int solicited_only) {
    (void)of, (void)solicited_only;
    return own_error;
}

// Every large number in a message must be the error number of the thread that logs it.
static void check_message(const char *format, va_list values) {
    char message[2048];
    unsigned found = 0;
    vsnprintf(message, sizeof(message), format, values);
    for (char *at = message; *at;) {
        if (*at < '0' || *at > '9') {
            at++;
            continue;
        }
        const unsigned long long number = strtoull(at, &at, 10);
        found += number == (unsigned)own_error;
        wrong += number >= ERROR_BASE && number != (unsigned)own_error;
    }
    wrong += found == 0;
}

static void check_values(const char *format, ...) {
    va_list values;
    va_start(values, format);
    check_message(format, values);
    va_end(values);
}

// The default log function writes to these; hardened builds call the second one.
void syslog(int priority, const char *format, ...) {
    va_list values;
    va_start(values, format);
    wrong += priority == 0;
    check_message(format, values);
    va_end(values);
}

void __syslog_chk(int priority, int flag, const char *format, ...) {
    va_list values;
    va_start(values, format);
    wrong += priority == 0 || flag < 0;
    check_message(format, values);
    va_end(values);
}

static void hear(enum rpma_log_level level, const char *file_name, const int line_no,
                 const char *function_name, const char *message_format, ...) {
    va_list values;
    va_start(values, message_format);
    wrong += level != RPMA_LOG_LEVEL_ERROR || line_no <= 0 || !file_name || !function_name;
    check_message(message_format, values);
    va_end(values);
}

// ---- the threads ---------------------------------------------------------------------------

static void *run(void *work) {
    void (*const function)(void) = *(void (**)(void))work;
    pthread_barrier_wait(&start);
    function();
    return NULL;
}

// The first thread does one thing, all others do another.
static void in_threads(void (*first)(void), void (*others)(void)) {
    const struct shape shape = {.name = "of events"};
    pthread_t threads[THREADS];
    world_conn(&w, &shape);
    cq = world_cq(&w);
    queue = fake_cq_on(world_cq_fd(cq), 0);
    assert_non_null(queue);
    taken = changes = acknowledged = wrong = 0;
    arm = queue->context->ops.req_notify_cq;
    queue->context->ops.req_notify_cq = answer;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, i ? &others : &first), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
    queue->context->ops.req_notify_cq = arm;
    assert_true(acknowledged > 0);
    MUST(rpma_conn_delete(&w.h.conn)); // acknowledges the rest
    assert_int_equal(acknowledged, taken);
    assert_int_equal(wrong, 0);
    world_drop(&w);
}

static bool enough(unsigned events, unsigned at_last) {
    return taken >= events && (changes >= CHANGES || taken >= at_last);
}

static void take_events(void) {
    while (!enough(EVENTS, AT_LAST))
        wrong += rpma_cq_wait(cq) != 0;
}

// ibv_destroy_cq() waits for ever for an event that is not acknowledged.
static void no_acknowledgement_is_lost(void **state) {
    (void)state;
    in_threads(take_events, take_events);
}

static void fail_always(void) {
    static atomic_int number;
    own_error = ERROR_BASE + ++number;
    while (!enough(FAILURES, FAILURES_AT_LAST)) {
        errno = 0;
        wrong += rpma_cq_wait(cq) != RPMA_E_PROVIDER || errno != own_error;
    }
}

static void change_the_log(void) {
    while (!enough(FAILURES, FAILURES_AT_LAST)) {
        wrong += rpma_log_set_function(hear) != 0;
        wrong += rpma_log_set_function(NULL) != 0; // back to the default one
    }
}

static void failures_do_not_mix(void **state) {
    (void)state;
    own_error = ERROR_BASE;
    check_values("%d and %d", ERROR_BASE, ERROR_BASE); // the check can tell them apart
    assert_int_equal(wrong, 0);
    check_values("%d and %d", ERROR_BASE, ERROR_BASE + 1);
    assert_int_equal(wrong, 1);
    own_error = 0;
    MUST(rpma_log_set_function(hear));
    in_threads(change_the_log, fail_always);
}

// A signal interrupts a call between two of its steps far more often than another thread does;
// its handler does what that thread would do.
static void enable_the_log(int signal) {
    (void)signal;
    const int error = errno;
    wrong += rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_ERROR) != 0;
    errno = error;
    changes++;
}

static void count_line(enum rpma_log_level level, const char *file_name, const int line_no,
                       const char *function_name, const char *message_format, ...) {
    (void)level, (void)file_name, (void)line_no, (void)function_name, (void)message_format;
    taken++;
}

static void the_log_is_set_as_a_whole(void **state) {
    (void)state;
    const struct sigaction action = {.sa_handler = enable_the_log};
    const struct itimerval once = {.it_value = {.tv_usec = 20}};
    struct sigaction before;
    changes = wrong = 0;
    MUST(rpma_log_set_function(count_line));
    sigaction(SIGALRM, &action, &before);
    for (unsigned i = 0; i < SIGNALS; i++) {
        enum rpma_log_level threshold = RPMA_LOG_DISABLED;
        setitimer(ITIMER_REAL, &once, NULL);
        while (changes == i)
            wrong += rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED) != 0;
        taken = 0;
        wrong += rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &threshold) != 0;
        wrong += rpma_mr_get_size(NULL, NULL) != RPMA_E_INVAL;
        wrong += (taken > 0) != (threshold == RPMA_LOG_LEVEL_ERROR);
    }
    sigaction(SIGALRM, &before, NULL);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(no_acknowledgement_is_lost),
        TEST(failures_do_not_mix),
        TEST(the_log_is_set_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
