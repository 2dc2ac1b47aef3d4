// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failing.c -- for each function that makes, releases or waits: every provider call and every
// allocation that can fail, the code that follows, the provider calls with which the function
// takes back what it did, and whether the function works once nothing fails any more

#include "failing.h"
#include "arguments.h"
#include "interrupt.h"

#include <stdio.h>

static struct arguments a;

static bool is(const char *function, const char *name) {
    return strcmp(function, name) == 0;
}

// What the function waits for; the descriptor, when it is to find nothing.
static int happen(const char *function, bool nothing) {
    if (strncmp(function, "rpma_ep_next_", 13) == 0) {
        if (!nothing)
            fake_cm_event(world_ep_fd(&w), RDMA_CM_EVENT_CONNECT_REQUEST, "hello", 5);
        return world_ep_fd(&w);
    }
    if (is(function, "rpma_conn_next_event")) {
        if (!nothing)
            fake_cm_event(world_event_fd(&w), RDMA_CM_EVENT_DISCONNECTED, NULL, 0);
        return world_event_fd(&w);
    }
    if (is(function, "rpma_peer_next_event")) {
        if (!nothing)
            fake_async_event(fake_context(0), IBV_EVENT_PORT_ACTIVE, NULL, 1);
        return fake_context(0)->async_fd;
    }
    if (!w.h.conn || (!strstr(function, "_wait") && !is(function, "rpma_cq_take_event")))
        return -1;
    if (!nothing)
        fake_notify(world_qp(&w)->send_cq);
    return world_cq_fd(world_cq(&w));
}

static void prepare(const struct subject *s, const char *function) {
    arguments_good(&a, function, &w);
    (void)arguments_set(&a, "pdata", 0);
    (void)arguments_set(&a, "type", s->remote);
}

static void must(const struct subject *s, const char *function) {
    (void)happen(function, false);
    prepare(s, function);
    MUST_OF(function, arguments_call(&a));
}

static void must_all(const struct subject *s, const char *functions) {
    char text[256], *rest = text;
    snprintf(text, sizeof(text), "%s", functions);
    for (char *function; (function = strsep(&rest, " "));)
        if (*function)
            must(s, function);
}

// The first argument that is the place of a handle.
static void **first_handle(void) {
    for (unsigned i = 0; i < a.call->params; i++)
        if (a.word[i] >= (uintptr_t)&w.h && a.word[i] < (uintptr_t)(&w.h + 1))
            return (void **)a.word[i]; // NOLINT(performance-no-int-to-ptr)
    return NULL;
}

// Where the name ends among the calls; 0: it is none of them.
static size_t end_of(const char *name, const char *calls) {
    const size_t length = strlen(name);
    for (const char *at = calls; (at = strstr(at, name)); at++)
        if ((at == calls || at[-1] == ' ') && at[length] == ' ')
            return (size_t)(at - calls) + length + 1;
    return 0;
}

// The provider calls that the function makes, without the blank behind the last one.
static const char *calls_of(const struct subject *s, const struct failure *f) {
    static char calls[512];
    const bool all = !f || (f->gone && !f->undo);
    const size_t made =
        all ? strlen(s->succeeds) : end_of(f->last ? f->last : f->fails, s->succeeds);
    if (f && f->last && made == 0)
        fail_msg("%s is no call of %s", f->last, s->function);
    snprintf(calls, sizeof(calls), "%.*s%s", (int)made, s->succeeds,
             f && f->undo ? f->undo : "");
    if (*calls)
        calls[strlen(calls) - 1] = '\0';
    return calls;
}

static void expect_failure(const struct subject *s, const struct failure *f) {
    const bool memory = is(f->fails, "malloc") || is(f->fails, "mmap");
    char cause[64];
    snprintf(cause, sizeof(cause), "%s()", f->fails);
    const struct expected_error expected = {
        .code = f->code  ? f->code
                : memory ? RPMA_E_NOMEM
                         : RPMA_E_PROVIDER,
        .condition = f->condition ? f->condition
                     : f->code    ? ""
                     : memory     ? "allocation failed"
                                  : cause,
        .cause = memory ? "out of memory" : cause,
        .error = f->error,
        .calls = calls_of(s, f),
        .level = f->how == SIGNAL && !f->code ? RPMA_LOG_LEVEL_DEBUG : 0,
    };
    const int fd = happen(s->function, f->how != AS_TOLD);
    if (f->how == AS_TOLD)
        fake_fail(f->fails, f->nth ? f->nth : 1, memory ? ENOMEM : f->error);
    if (f->how == NOTHING_TO_READ)
        world_nonblocking(fd);
    if (f->how == SIGNAL)
        interrupt_wait(NULL);
    if (f->also)
        fake_fail(f->also, 1, ENXIO);
    prepare(s, s->function);
    arguments_watch(&a);
    struct handles after = w.h;
    if (f->gone)
        *(void **)((char *)&after + ((char *)first_handle() - (char *)&w.h)) = NULL;
    unit_begin();
    unit_expect_error(arguments_call(&a), s->function, &expected, __FILE__, __LINE__);
    if (memcmp(&after, &w.h, sizeof(after)) != 0)
        fail_msg("%s: the handles are not as expected", s->function);
    if (f->how == SIGNAL)
        interrupt_done();
    fake_faults_off();
}

struct one {
    const struct subject *subject;
    const struct failure *failure; // NULL: none
};

static void leaves_what_it_should(void **state) {
    const struct one *one = *state;
    const struct subject *s = one->subject;
    const struct failure *f = one->failure;
    memset(&w.h, 0, sizeof(w.h));
    must_all(s, s->before);
    if (f)
        expect_failure(s, f);
    if (f && s->again)
        must(s, s->again);
    must(s, s->function);
    if (!f || !f->gone)
        EXPECT_CALLS(calls_of(s, NULL));
    world_drop(&w);
}

int main(void) {
    enum { MOST = 250 };
    static struct one ones[MOST];
    static struct CMUnitTest tests[MOST];
    static char names[MOST][128];
    size_t count = 0;
    for (const struct subject *s = subjects; s < subjects + LENGTH(subjects); s++)
        for (const struct failure *f = NULL; !f || f->fails; f = f ? f + 1 : s->failures) {
            if (count == MOST) {
                fprintf(stderr, "failing: more than %d failures: raise MOST\n", MOST);
                return 1;
            }
            ones[count] = (struct one){s, f};
            snprintf(names[count], sizeof(names[0]), "%s: %s fails%s%s", s->function,
                     f ? f->fails : "nothing", f ? " with " : "",
                     f ? strerrorname_np(f->error) : "");
            tests[count] = (struct CMUnitTest){names[count], leaves_what_it_should, unit_setup,
                                               unit_teardown, &ones[count]};
            count++;
        }
    return unit_run("failing", tests, count);
}
