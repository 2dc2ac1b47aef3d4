// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// sweep.c -- makes each call fail with each error, one after the other.

#include "sweep.h"

#include <stdio.h>
#include <stdlib.h>

enum { MORE_THAN_ANY_SCENARIO = 500 };

// The values of errno that the library distinguishes: retry, would-block and so on.
static const int errors[] = {EIO, ENOMEM, EAGAIN, EINVAL, EOPNOTSUPP, EINTR, ENODATA};

// SWEEP_ONE_ERROR leaves only the first, for tools that slow each run down.
static size_t errors_to_try(void) {
    return getenv("SWEEP_ONE_ERROR") ? 1 : LENGTH(errors);
}

static const char *describe(const struct sweep *s, const char *what) {
    static char text[512];
    snprintf(text, sizeof(text), "%s: call %u%s (and %u) fails with %s (%s first): %s", s->name,
             s->nth, s->later ? " and all later" : "", s->second, strerrorname_np(s->error),
             fake_first_fault(), what);
    return text;
}

void sweep_begin(struct sweep *s, const struct fixture *w) {
    s->before = w->h;
}

// A failed call consumes and writes no handle, except for the functions below.
static void check_handles(struct sweep *s, const struct fixture *w, const char *function) {
    struct handles expected = s->before;
    if (strcmp(function, "rpma_conn_req_connect") == 0 ||
        strcmp(function, "rpma_conn_req_reject") == 0 ||
        strcmp(function, "rpma_conn_req_delete") == 0)
        expected.req = NULL;
    if (strcmp(function, "rpma_conn_delete") == 0)
        expected.conn = NULL;
    // These keep the handle if the first release fails, and clear it if a later one fails.
    if (strcmp(function, "rpma_srq_delete") == 0 && fake_count("ibv_destroy_cq") > 0)
        expected.srq = NULL;
    if (strcmp(function, "rpma_cq_delete") == 0 && fake_count("ibv_destroy_comp_channel") > 0)
        *(w->h.shared_cq != expected.shared_cq ? &expected.shared_cq : &expected.shared_rcq) =
            NULL;
    if (memcmp(&expected, &w->h, sizeof(expected)) != 0)
        fail_msg("%s", describe(s, "an output was written"));
}

static void check_log(struct sweep *s, const char *function, int ret) {
    const bool interrupted =
        s->error == EINTR && (strcmp(fake_first_fault(), "rdma_get_cm_event") == 0 ||
                              strcmp(fake_first_fault(), "ibv_get_async_event") == 0);
    const bool answer = ret == RPMA_E_NO_EVENT || ret == RPMA_E_NO_COMPLETION ||
                        ret == RPMA_E_AGAIN || interrupted;
    const enum rpma_log_level level = answer                  ? RPMA_LOG_LEVEL_DEBUG
                                      : ret == RPMA_E_UNKNOWN ? RPMA_LOG_LEVEL_WARNING
                                                              : RPMA_LOG_LEVEL_ERROR;
    const struct logged_line *line = logged_line(level, 0);
    if (!line || strcmp(line->function, function) != 0 ||
        logged_count(RPMA_LOG_LEVEL_ERROR) != (level == RPMA_LOG_LEVEL_ERROR))
        fail_msg("%s\n%s", describe(s, "not one log line of the function"), logged_text());
}

bool sweep_step(struct sweep *s, const struct fixture *w, int ret, const char *text) {
    if (ret == 0)
        return true;
    const char *function = unit_function(text);
    s->failed++;
    if (s->cleaning)
        fail_msg("%s: %s", describe(s, function), "still fails when the provider works again");
    if (!contract_documents(function, ret))
        fail_msg("%s = %s, which is not documented", describe(s, function),
                 contract_code_name(ret));
    check_handles(s, w, function);
    check_log(s, function, ret);
    return false;
}

// Returns true if the scenario has too few calls to reach the fault.
static bool run_once(struct sweep *s, scenario *run, const void *argument,
                     void (*prepare)(void)) {
    static struct fixture w;
    memset(&w.h, 0, sizeof(w.h));
    w.sweep = s;
    s->failed = 0;
    s->cleaning = false;
    fake_reset();
    if (prepare)
        prepare();
    const unsigned descriptors = unit_descriptors();
    if (s->later)
        fake_fail_from(NULL, s->nth, s->error);
    else
        fake_fail(NULL, s->nth, s->error);
    if (s->second)
        fake_fail(NULL, s->second, s->error);

    const bool passed = run(&w, argument);
    const bool dropped = fixture_delete(&w);
    const bool reached = fake_faults_fired() > 0;
    if (!reached && !(passed && dropped))
        fail_msg("%s", describe(s, "failed without a fault"));
    s->cleaning = true;
    fake_faults_off();
    fixture_delete(&w); // releases the objects whose release failed

    unit_nothing_left(describe(s, "afterwards"));
    fake_reset();
    if (unit_descriptors() != descriptors)
        fail_msg("%s", describe(s, "a descriptor is left"));
    return !reached;
}

static unsigned sweep_error(struct sweep *s, scenario *run, const void *argument,
                            void (*prepare)(void)) {
    for (s->nth = 1; s->nth < MORE_THAN_ANY_SCENARIO; s->nth++)
        if (run_once(s, run, argument, prepare))
            return s->nth - 1;
    fail_msg("%s", describe(s, "the scenario never passes"));
    return 0;
}

// The second call may exist only because the first one fails.
static unsigned sweep_pairs(struct sweep *s, unsigned calls, scenario *run,
                            const void *argument, void (*prepare)(void)) {
    unsigned runs = 0;
    for (s->nth = 1; s->nth <= calls; s->nth++)
        for (s->second = s->nth + 1; s->second <= calls; s->second++, runs++)
            (void)run_once(s, run, argument, prepare);
    return runs;
}

void sweep(const char *name, unsigned calls, scenario *run, const void *argument,
           void (*prepare)(void)) {
    unsigned runs = 0;
    for (int later = 0; later < 2; later++)
        for (size_t i = 0; i < errors_to_try(); i++) {
            // A blocking wait is repeated while signals interrupt it, so it would never end.
            if (later && errors[i] == EINTR)
                continue;
            struct sweep s = {.name = name, .later = later, .error = errors[i]};
            const unsigned found = sweep_error(&s, run, argument, prepare);
            // The numbers of calls are those of a build without native operations.
            if (found != calls && !BUILD_FLUSHES && !BUILD_WRITES_ATOMICALLY)
                fail_msg("%s: %u calls that can fail instead of %u", name, found, calls);
            runs += found + 1;
        }
    if (errors_to_try() > 1)
        runs += sweep_pairs(&(struct sweep){.name = name, .error = errors[0]}, calls, run,
                            argument, prepare);
    print_message("%-32s %3u calls, %5u runs\n", name, calls, runs);
}
