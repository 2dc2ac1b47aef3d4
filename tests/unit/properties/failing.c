// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failing.c -- for each function that creates, releases or waits: every provider call and
// every allocation that can fail, the returned code, the provider calls that undo earlier
// ones, and the success of the same call without a failure

#include "failing.h"
#include "advice.h"
#include "arguments.h"
#include "interrupt.h"
#include "logged.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static struct arguments a;

static bool is(const char *function, const char *name) {
    return strcmp(function, name) == 0;
}

static void prepare(const struct subject *s, const char *function) {
    arguments_good(&a, function, &w);
    (void)arguments_set(&a, "pdata", 0);
    (void)arguments_set(&a, "type", s->remote);
}

static void must(const struct subject *s, const char *function) {
    (void)arguments_trigger(function, &w, false);
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

// A failing call; at is its index in the calls of the subject.
struct one {
    const struct subject *subject;
    struct failure failure; // without a name: no call fails
    size_t at;
};

static char calls[24][32]; // of the subject that is tested
static size_t call_count;

static void split_calls(const struct subject *s) {
    char text[512], *rest = text;
    snprintf(text, sizeof(text), "%s", s->calls);
    call_count = 0;
    for (char *call; (call = strsep(&rest, " "));)
        if (*call)
            snprintf(calls[call_count++], sizeof(calls[0]), "%s", call);
}

static bool releases(const char *call) {
    return strstr(call, "destroy") || strstr(call, "free") || strstr(call, "de") == call + 4 ||
           is(call, "rdma_reject") || is(call, "ibv_ack_async_event");
}

static const char *release_of(const char *call, bool is_acknowledged) {
    static const char *const pairs[][2] = {
        {"rdma_create_event_channel", "rdma_destroy_event_channel "},
        {"rdma_create_id", "rdma_destroy_id "},
        {"rdma_create_qp_ex", "rdma_destroy_qp "},
        {"rdma_getaddrinfo", "rdma_freeaddrinfo "},
        {"ibv_alloc_pd", "ibv_dealloc_pd "},
        {"ibv_create_comp_channel", "ibv_destroy_comp_channel "},
        {"ibv_create_cq", "ibv_destroy_cq "},
        {"ibv_create_srq", "ibv_destroy_srq "},
        {"ibv_reg_mr", "ibv_dereg_mr "},
    };
    if (is(call, "rdma_get_cm_event"))
        return is_acknowledged ? REJECTED : REJECTED "rdma_ack_cm_event ";
    for (size_t i = 0; i < LENGTH(pairs); i++)
        if (is(call, pairs[i][0]))
            return pairs[i][1];
    return "";
}

enum { MAX_CALLS_TEXT = 512 };

static void append_call(char *text, const char *more, const char *end) {
    const size_t used = strlen(text), room = MAX_CALLS_TEXT - used;
    assert_true((size_t)snprintf(text + used, room, "%s%s", more, end) < room);
}

// The provider calls that the function makes, without calls of libc.
static const char *calls_of(const struct one *one) {
    static char text[MAX_CALLS_TEXT];
    const struct failure *f = &one->failure;
    const bool all = !f->fails || (f->gone && !f->undo);
    bool is_acknowledged = false;
    text[0] = '\0';
    for (size_t i = 0; i < (all ? call_count : one->at + 1); i++) {
        if (strchr(calls[i], '_'))
            append_call(text, calls[i], " ");
        is_acknowledged |= is(calls[i], "rdma_ack_cm_event");
    }
    if (f->undo)
        append_call(text, f->undo, "");
    for (size_t i = all || f->undo ? 0 : one->at; i-- > 0;)
        append_call(text, release_of(calls[i], is_acknowledged), "");
    if (*text)
        text[strlen(text) - 1] = '\0';
    return text;
}

static void make_fail(const struct one *one, int fd) {
    const struct failure *f = &one->failure;
    unsigned nth = 0;
    for (size_t i = 0; i <= one->at; i++)
        nth += is(calls[i], f->fails);
    if (f->how == ERROR_NUMBER)
        fake_fail(f->fails, nth, strchr(f->fails, '_') || f->error ? f->error : ENOMEM);
    if (f->how == NOTHING_TO_READ)
        fixture_nonblocking(fd);
    if (f->how == SIGNAL)
        interrupt_wait(NULL);
    if (f->also)
        fake_fail(f->also, 1, ENXIO);
}

static void expect_failure(const struct one *one) {
    const struct subject *s = one->subject;
    const struct failure *f = &one->failure;
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
        .calls = calls_of(one),
        .level = f->how == SIGNAL && !f->code ? RPMA_LOG_LEVEL_DEBUG : 0,
    };
    make_fail(one, arguments_trigger(s->function, &w, f->how != ERROR_NUMBER));
    prepare(s, s->function);
    arguments_watch(&a);
    struct handles after = w.h;
    if (f->gone)
        *(void **)((char *)&after + ((char *)arguments_handle(&a) - (char *)&w.h)) = NULL;
    unit_begin();
    unit_expect_error(arguments_call(&a), s->function, &expected, __FILE__, __LINE__);
    if (memcmp(&after, &w.h, sizeof(after)) != 0)
        fail_msg("%s: the handles are not as expected", s->function);
    if (f->how == SIGNAL)
        interrupt_done();
    fake_faults_off();
}

static void expect_released(const struct one *one) {
    const struct subject *s = one->subject;
    const struct failure *f = &one->failure;
    print_message("  %s fails with %s\n", f->fails ? f->fails : "nothing",
                  strerrorname_np(f->error));
    must_all(s, s->before);
    if (f->fails)
        expect_failure(one);
    if (f->fails && s->again)
        must(s, s->again);
    must(s, s->function);
    if (!f->gone)
        EXPECT_CALLS(calls_of(&(struct one){.subject = s}));
    fixture_reset();
}

static bool is_described(const struct subject *s, const char *call) {
    for (const struct failure *f = s->failures; f->fails; f++)
        if (is(f->fails, call) && f->code == 0 && f->how == ERROR_NUMBER)
            return true;
    return false;
}

static void each_call_fails(void **state) {
    const struct subject *s = *state;
    split_calls(s);
    expect_released(&(struct one){.subject = s});
    for (size_t i = 0; i < call_count; i++)
        if (!releases(calls[i]) && !is_described(s, calls[i]))
            expect_released(&(struct one){s, {calls[i], is(calls[i], "malloc") ? 0 : EIO}, i});
    for (const struct failure *f = s->failures; f->fails; f++) {
        size_t at = 0;
        while (at < call_count && !is(calls[at], f->fails))
            at++;
        expect_released(&(struct one){s, *f, at});
    }
}

// ---- advice --------------------------------------------------------------------------------

// words: each followed by a blank
static bool has_word(const char *words, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = words; *at; at += strcspn(at, " ") + 1)
        if (strcspn(at, " ") == length && strncmp(at, word, length) == 0)
            return true;
    return false;
}

static bool has_error(const struct advice *row, int error) {
    for (size_t i = 0; i < LENGTH(row->errors); i++)
        if (row->errors[i] == error)
            return true;
    return false;
}

static bool happens_in(const struct advice *row, unsigned situation) {
    for (size_t i = 0; i < LENGTH(dimensions); i++)
        if ((row->when & dimensions[i]) && !(row->when & dimensions[i] & situation))
            return false;
    return true;
}

static bool is_advised(const char *words, const struct one *one, unsigned situation) {
    for (const struct advice *row = advices; row < advices + LENGTH(advices); row++)
        if (is(row->words, words) && has_word(row->calls, one->failure.fails) &&
            has_error(row, one->failure.error) && happens_in(row, situation) &&
            (!row->only || has_word(row->only, one->subject->function)))
            return true;
    return false;
}

static unsigned side_of(const struct subject *s) {
    return strncmp(s->function, "rpma_utils", 10) == 0                              ? LOOKUP
           : strstr(s->function, "rpma_ep_") || strstr(s->before, "rpma_ep_listen") ? SERVER
           : strstr(s->function, "rpma_conn")                                       ? CLIENT
                                                                                    : NO_SIDE;
}

static void limit_locked_memory(rlim_t maximum) {
    struct rlimit limit;
    (void)getrlimit(RLIMIT_MEMLOCK, &limit);
    limit.rlim_cur = maximum;
    (void)setrlimit(RLIMIT_MEMLOCK, &limit);
}

static void enter(unsigned situation) {
    fake_profile()->transport = situation & IWARP ? SIM_IWARP : SIM_ROCE;
    fake_device()->infiniband = situation & INFINIBAND;
    if (situation & FORK_SAFE)
        (void)setenv("RDMAV_FORK_SAFE", "1", 1);
    else
        (void)unsetenv("RDMAV_FORK_SAFE");
    limit_locked_memory(situation & LOCKS_NOTHING ? 0 : 64 * 1024);
}

static void has_the_advice_of_its_cause(const struct one *one, unsigned situation) {
    static unsigned char bytes[255];
    static const struct rpma_conn_private_data data = {bytes, sizeof(bytes)};
    const struct subject *s = one->subject;
    const struct failure *f = &one->failure;
    enter(situation);
    must_all(s, s->before);
    make_fail(one, arguments_trigger(s->function, &w, false));
    if ((situation & TUNED) && w.h.cfg)
        MUST(rpma_conn_cfg_set_inline_size(w.h.cfg, 64));
    prepare(s, s->function);
    // The provider refuses data that is too long with EINVAL only.
    if ((situation & TUNED) && (f->error == EINVAL || (situation & IWARP)) &&
        has_word("rdma_connect rdma_accept rdma_reject ", f->fails))
        (void)arguments_set(&a, "pdata", (uintptr_t)&data);
    unit_begin();
    (void)arguments_call(&a);
    for (const struct advice *row = advices; row < advices + LENGTH(advices); row++) {
        const bool wanted = is_advised(row->words, one, situation);
        if (wanted != (strstr(logged_text(), row->words) != NULL))
            fail_msg("%s, %s fails with %s, situation 0x%x: %s \"%s\": %s", s->function,
                     f->fails, strerrorname_np(f->error), situation, wanted ? "lacks" : "has",
                     row->words, logged_text());
    }
    fixture_reset();
}

// Each combination of the dimensions but the side, which the function has. Only objects depend
// on the limit of locked memory and on fork protection.
static void advise_in_each_situation(const struct one *one) {
    const bool is_object = has_word(OBJECTS, one->failure.fails);
    for (unsigned transport = INFINIBAND; transport <= IWARP; transport <<= 1)
        for (unsigned tuning = DEFAULTS; tuning <= TUNED; tuning <<= 1)
            for (unsigned fork = is_object ? FORK_UNSAFE : FORK_SAFE; fork <= FORK_SAFE;
                 fork <<= 1)
                for (unsigned lock = LOCKS_NOTHING;
                     lock <= (is_object ? LOCKS_SOME : LOCKS_NOTHING); lock <<= 1)
                    has_the_advice_of_its_cause(one, side_of(one->subject) | transport |
                                                         tuning | fork | lock);
}

// The error numbers of the table, each once.
static size_t known_errors(int errors[64]) {
    size_t count = 0;
    for (const struct advice *row = advices; row < advices + LENGTH(advices); row++)
        for (size_t i = 0; i < LENGTH(row->errors); i++) {
            size_t at = 0;
            while (at < count && errors[at] != row->errors[i])
                at++;
            if (at == count && row->errors[i] != 0)
                errors[count++] = row->errors[i];
        }
    return count;
}

static void advice_matches_the_failure(void **state) {
    const struct subject *s = *state;
    int errors[64];
    const size_t count = known_errors(errors);
    split_calls(s);
    for (size_t i = 0; i < call_count; i++)
        for (size_t n = 0; n < count && !is(calls[i], "malloc") && !is(calls[i], "mmap"); n++)
            advise_in_each_situation(&(struct one){s, {calls[i], errors[n]}, i});
}

int main(void) {
    static struct CMUnitTest tests[2 * LENGTH(subjects)];
    static char names[LENGTH(subjects)][64];
    limit_locked_memory(64 * 1024);
    for (size_t i = 0; i < LENGTH(subjects); i++) {
        void *subject = (void *)(uintptr_t)&subjects[i];
        snprintf(names[i], sizeof(names[i]), "advice of %s", subjects[i].function);
        tests[2 * i] = (struct CMUnitTest){subjects[i].function, each_call_fails, unit_setup,
                                           unit_teardown, subject};
        tests[2 * i + 1] = (struct CMUnitTest){names[i], advice_matches_the_failure, unit_setup,
                                               unit_teardown, subject};
    }
    return unit_run("failing", tests, LENGTH(tests));
}
