// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failure_lines.c -- makes one failure happen and prints what the library logs about it, for
// failure_lines.py, which compares this library with the original
//
//   unit-failure-lines --list       the names of all failures
//   unit-failure-lines NAME         what the library says about that failure
//   unit-failure-lines --layout     one line of each level, as the default function writes it
//   unit-failure-lines --unread     fails if a failure costs anything for a line nobody reads
//
// It prints rows of words separated by tabs: "code", the code of the call that failed; "line",
// level, function and message of a log line; "memory", "posted", "rkey", "lkey", values that
// differ from run to run or must not be logged; "syslog", level and text for syslog().

#include "failure_lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <syslog.h>

uint8_t failing_usage = WORLD_EVERY_USAGE;

static struct {
    const char *name;
    int (*call)(void);
} added[256];
static size_t added_count;

void failing_add(const char *name, int (*call)(void)) {
    if (added_count == LENGTH(added))
        abort();
    added[added_count].name = name;
    added[added_count++].call = call;
}

static int (*call_named(const char *name))(void) {
    for (size_t i = 0; i < added_count; i++)
        if (strcmp(added[i].name, name) == 0)
            return added[i].call;
    return NULL;
}

// The first columns of a row of failure_lines.tsv whose call this executable has.
static struct failure {
    const char *name;
    const char *stage;  // the objects that exist before the call
    const char *faults; // provider calls that fail once; "-": the call itself is to blame
    int error;          // of the faults
    int (*call)(void);
    int (*before)(void); // NULL: nothing comes before the objects
} failures[256];
static size_t failure_count;

static int error_named(const char *name) {
    for (int error = 1; error < 256; error++)
        if (strerrorname_np(error) && strcmp(strerrorname_np(error), name) == 0)
            return error;
    return 0;
}

static void read_table(void) {
    static char text[256 * 1024];
    FILE *file = fopen(FAILURE_LINES, "r");
    if (!file)
        exit(1);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n"));) {
        struct failure *f = &failures[failure_count];
        f->name = strsep(&line, "\t");
        f->stage = strsep(&line, "\t");
        f->faults = strsep(&line, "\t");
        f->error = line ? error_named(strsep(&line, "\t")) : 0;
        f->call = line ? call_named(strsep(&line, "\t")) : NULL;
        f->before = line ? call_named(strsep(&line, "\t")) : NULL;
        if (!f->call)
            continue;
        if (++failure_count == LENGTH(failures))
            abort();
    }
}

static const struct failure *failure_called(const char *name) {
    for (size_t i = 0; i < failure_count; i++)
        if (strcmp(failures[i].name, name) == 0)
            return &failures[i];
    return NULL;
}

// Begins anew and makes the objects; then the provider fails as said.
static void stand(const struct failure *failure) {
    // Addresses that need more than 32 bits: the original cuts them.
    unsigned char desc[21];
    const char *stage = failure->stage;
    const struct shape shape = {.incoming = strcmp(stage, "incoming") == 0,
                                .shared = strcmp(stage, "sharing") == 0,
                                .private_data = 3};
    static char names[128]; // the fakes keep the pointers
    fake_reset();
    memset(&w.h, 0, sizeof(w.h));
    failing_usage = WORLD_EVERY_USAGE;
    if (failure->before)
        (void)failure->before();
    if (strcmp(stage, "nothing") != 0) {
        world_peer(&w);
        world_descriptor(desc, FAILING_REMOTE_ADDR, FAILING_REMOTE_SIZE, FAILING_RKEY,
                         failing_usage);
        MUST(rpma_mr_remote_delete(&w.h.remote));
        MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w.h.remote));
        if (strcmp(stage, "listening") == 0)
            world_listen(&w);
        else if (strcmp(stage, "peer") != 0)
            world_request(&w, &shape);
        if (strcmp(stage, "connected") == 0 || strcmp(stage, "sharing") == 0)
            world_connect(&w, &shape);
    }
    snprintf(names, sizeof(names), "%s", failure->faults);
    if (strcmp(names, "-") == 0)
        return;
    for (char *rest, *name = strtok_r(names, " ", &rest); name;
         name = strtok_r(NULL, " ", &rest))
        fake_fail(name, 1, failure->error);
}

static void print_lines(int code) {
    printf("code\t%s\n", contract_code_name(code));
    for (int level = RPMA_LOG_LEVEL_FATAL; level <= RPMA_LOG_LEVEL_DEBUG; level++) {
        const struct logged_line *line;
        for (unsigned i = 0; (line = logged_line((enum rpma_log_level)level, i)); i++)
            printf("line\t%d\t%s\t%s\n", level, line->function, line->message);
    }
}

static void print_values(void) {
    const struct fake_call *post = fake_last("ibv_post_send");
    printf("memory\t%#llx\n", (unsigned long long)(uintptr_t)w.memory);
    if (post)
        printf("posted\t%#llx\n", (unsigned long long)post->send.sge.addr);
    printf("rkey\t%#x\nlkey\t%#x\n", FAILING_RKEY, fake_lkey(w.memory));
}

// Advice names these limits, whatever this machine allows.
static void limit_to(int resource, rlim_t most) {
    struct rlimit limit;
    assert_int_equal(getrlimit((__rlimit_resource_t)resource, &limit), 0);
    limit.rlim_cur = most;
    assert_int_equal(setrlimit((__rlimit_resource_t)resource, &limit), 0);
}

static void happen(void **state) {
    const struct failure *failure = *state;
    limit_to(RLIMIT_MEMLOCK, 48 * 1024);
    limit_to(RLIMIT_NOFILE, 100);
    logged_start();
    stand(failure);
    unit_begin();
    print_lines(failure->call());
    print_values();
}

// Logs one line of each level with the default function. No release logs at FATAL.
static void lay_out(void **state) {
    (void)state;
    static const struct {
        enum rpma_log_level level;
        const char *failure;
    } ways[] = {{RPMA_LOG_LEVEL_ERROR, "pd: refused"},
                {RPMA_LOG_LEVEL_WARNING, "event: strange"},
                {RPMA_LOG_LEVEL_NOTICE, "event: established"},
                {RPMA_LOG_LEVEL_INFO, "peer configuration"},
                {RPMA_LOG_LEVEL_DEBUG, "remote region"}};
    for (size_t i = 0; i < LENGTH(ways); i++) {
        const struct failure *failure = failure_called(ways[i].failure);
        int priority;
        stand(failure);
        (void)rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
        (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, ways[i].level);
        (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_LEVEL_DEBUG);
        fake_syslog_forget();
        (void)failure->call();
        const char *text = fake_syslog(&priority);
        // The original leaves the facility to its openlog().
        printf("syslog\t%d\t%s", LOG_PRI(priority), text);
        (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED);
    }
}

// Nothing is deleted here, because a delete may fail again. The sweeps look for leaks.
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
    return 1;
}

// For lines below every threshold, nothing is formatted and no queue pair is queried.
static void nobody_reads(void **state) {
    (void)state;
    bool costs = false;
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED);
    for (const struct failure *failure = failures; failure < failures + failure_count;
         failure++) {
        stand(failure);
        fake_forget();
        const unsigned before = fake_formatted();
        (void)failure->call();
        if (fake_formatted() != before || fake_count("ibv_query_qp") != 0) {
            print_error("%s: %u texts, asks %u times\n", failure->name,
                        fake_formatted() - before, fake_count("ibv_query_qp"));
            costs = true;
        }
    }
    assert_false(costs);
}

int main(int argc, char **argv) {
    read_table();
    const struct failure *failure = argc == 2 ? failure_called(argv[1]) : NULL;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < failure_count; i++)
            puts(failures[i].name);
        return 0;
    }
    const bool unread = argc == 2 && strcmp(argv[1], "--unread") == 0;
    if (!failure && !unread && (argc != 2 || strcmp(argv[1], "--layout") != 0)) {
        fprintf(stderr, "usage: unit-failure-lines --list | --layout | --unread | NAME\n");
        return 2;
    }
    const char *trouble = fake_hook_allocator();
    if (trouble) {
        fprintf(stderr, "failure_lines: %s\n", trouble);
        return 1;
    }
    unit_leaves_errno_out = true;
    const struct CMUnitTest tests[] = {{argv[1],
                                        failure  ? happen
                                        : unread ? nobody_reads
                                                 : lay_out,
                                        NULL, NULL, (void *)(uintptr_t)failure}};
    return _cmocka_run_group_tests("failure_lines", tests, 1, NULL, NULL);
}
