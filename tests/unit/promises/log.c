// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log.c -- thresholds, log functions of the program, and the default function

#include "world.h"

#include <dlfcn.h>
#include <regex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

static enum rpma_log_level threshold_at_start, aux_at_start;

// One message of each level that the library has, from calls that need few objects.
static void log_something_at(enum rpma_log_level level) {
    static char name[3000];
    unsigned char desc[21];
    memset(&w.h, 0, sizeof(w.h));
    world_descriptor(desc, 1, 2, 3, 1);
    switch (level) {
    case RPMA_LOG_LEVEL_ERROR:
        (void)rpma_mr_remote_delete(NULL);
        break;
    case RPMA_LOG_LEVEL_DEBUG:
        (void)rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w.h.remote);
        (void)rpma_mr_remote_delete(&w.h.remote);
        break;
    case RPMA_LOG_LEVEL_NOTICE: // longer than there is room for
        memset(name, 'x', sizeof(name) - 1);
        (void)rpma_peer_new(fake_context(0), &w.h.peer);
        (void)rpma_conn_req_new(w.h.peer, name, "1", NULL, &w.h.req);
        (void)rpma_conn_req_delete(&w.h.req);
        (void)rpma_peer_delete(&w.h.peer);
        break;
    case RPMA_LOG_LEVEL_INFO:
        (void)rpma_peer_cfg_from_descriptor(desc, sizeof(desc), &w.h.pcfg);
        (void)rpma_peer_cfg_delete(&w.h.pcfg);
        break;
    default:
        fail_msg("no message of level %d", level);
    }
}

// ---- thresholds ----------------------------------------------------------------------------

TEST_THAT(thresholds_start_as_documented) {
    assert_int_equal(threshold_at_start, RPMA_LOG_LEVEL_WARNING);
    assert_int_equal(aux_at_start, RPMA_LOG_DISABLED);
}

TEST_THAT(thresholds_are_independent) {
    for (int i = RPMA_LOG_DISABLED; i <= RPMA_LOG_LEVEL_DEBUG; i++)
        for (int k = RPMA_LOG_DISABLED; k <= RPMA_LOG_LEVEL_DEBUG; k++) {
            enum rpma_log_level level, aux;
            MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level)i));
            MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, (enum rpma_log_level)k));
            MUST(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level));
            MUST(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &aux));
            assert_int_equal(level, i);
            assert_int_equal(aux, k);
        }
    MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, RPMA_LOG_DISABLED));
}

TEST_THAT(threshold_decides_what_is_logged) {
    static const enum rpma_log_level levels[] = {RPMA_LOG_LEVEL_ERROR, RPMA_LOG_LEVEL_NOTICE,
                                                 RPMA_LOG_LEVEL_INFO, RPMA_LOG_LEVEL_DEBUG};
    for (int threshold = RPMA_LOG_DISABLED; threshold <= RPMA_LOG_LEVEL_DEBUG; threshold++)
        for (size_t i = 0; i < LENGTH(levels); i++) {
            (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level)threshold);
            logged_forget();
            log_something_at(levels[i]);
            const bool expected = (int)levels[i] <= threshold;
            assert_int_equal(logged_count(levels[i]), expected);
        }
}

// ---- functions of the program --------------------------------------------------------------

TEST_THAT(program_gets_location_and_format) {
    log_something_at(RPMA_LOG_LEVEL_ERROR);
    const struct logged_line *line = logged_line(RPMA_LOG_LEVEL_ERROR, 0);
    assert_string_equal(line->file, "mr.cc");
    assert_true(line->line > 0);
    assert_string_equal(line->function, "rpma_mr_remote_delete");
    assert_string_equal(line->message, "mr_ptr == NULL");
    assert_int_equal(line->format[strlen(line->format) - 1], '\n');
}

static int depth;

static void logs_again(enum rpma_log_level level, const char *file_name, const int line_no,
                       const char *function_name, const char *message_format, ...) {
    (void)level, (void)file_name, (void)line_no, (void)function_name, (void)message_format;
    if (depth < 5) {
        depth++;
        errno = ENOENT;
        log_something_at(RPMA_LOG_LEVEL_ERROR);
    }
    if (depth == 5)
        (void)rpma_log_set_function(NULL); // even this
}

TEST_THAT(log_function_may_call_the_library) {
    depth = 0;
    MUST(rpma_log_set_function(logs_again));
    assert_int_equal(rpma_mr_remote_delete(NULL), RPMA_E_INVAL);
    assert_int_equal(depth, 5);
}

// The caller gets the provider's errno, whatever the log function does.
TEST_THAT(log_function_may_change_errno) {
    struct rpma_peer *peer = NULL;
    depth = 0;
    fake_fail("ibv_alloc_pd", 1, EACCES);
    MUST(rpma_log_set_function(logs_again));
    assert_int_equal(rpma_peer_new(fake_context(0), &peer), RPMA_E_PROVIDER);
    assert_int_equal(errno, EACCES);
}

// ---- the default function ------------------------------------------------------------------

// The text that fd 2 gets from a message of that level.
static const char *stderr_of(enum rpma_log_level level) {
    static char text[4096];
    FILE *file = tmpfile();
    fflush(stderr);
    const int kept = dup(2);
    dup2(fileno(file), 2);
    log_something_at(level);
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void use_default(enum rpma_log_level threshold, enum rpma_log_level aux) {
    (void)rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, threshold);
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, aux);
    fake_syslog_forget();
}

TEST_THAT(default_writes_to_syslog) {
    static const struct {
        enum rpma_log_level level;
        int severity;
        const char *tag;
    } cases[] = {
        {RPMA_LOG_LEVEL_ERROR, LOG_ERR, "*ERROR* mr.cc: "},
        {RPMA_LOG_LEVEL_INFO, LOG_INFO, "*INFO*  config.cc: "},
        {RPMA_LOG_LEVEL_DEBUG, LOG_DEBUG, "*DEBUG* mr.cc: "},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        int priority;
        use_default(RPMA_LOG_LEVEL_DEBUG, RPMA_LOG_DISABLED);
        assert_string_equal(stderr_of(cases[i].level), "");
        const char *text = fake_syslog(&priority);
        assert_int_equal(priority, LOG_LOCAL7 | cases[i].severity);
        assert_ptr_equal(strstr(text, cases[i].tag), text);
        assert_non_null(strstr(text, ": rpma_"));
    }
}

TEST_THAT(default_copies_to_stderr_as_aux_says) {
    char pattern[512];
    regex_t expression;
    snprintf(pattern, sizeof(pattern),
             "^[A-Z][a-z]{2} [0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6} \\[%ld\\] "
             "\\*ERROR\\* [a-z_]+\\.cc: +[0-9]+: rpma_mr_remote_delete: mr_ptr == NULL\n$",
             (long)syscall(SYS_gettid));
    assert_int_equal(regcomp(&expression, pattern, REG_EXTENDED | REG_NOSUB), 0);
    use_default(RPMA_LOG_LEVEL_DEBUG, RPMA_LOG_LEVEL_ERROR);
    const char *text = stderr_of(RPMA_LOG_LEVEL_ERROR);
    if (regexec(&expression, text, 0, NULL, 0) != 0)
        fail_msg("on stderr: \"%s\", expected: \"%s\"", text, pattern);
    regfree(&expression);
    assert_string_equal(stderr_of(RPMA_LOG_LEVEL_INFO), "");
    use_default(RPMA_LOG_LEVEL_ERROR, RPMA_LOG_LEVEL_DEBUG); // AUX cannot show what is filtered
    assert_string_equal(stderr_of(RPMA_LOG_LEVEL_INFO), "");
    int priority;
    fake_syslog(&priority);
    assert_int_equal(priority, -1);
    use_default(RPMA_LOG_LEVEL_WARNING, RPMA_LOG_DISABLED);
}

// The executable precedes libc, so the library gets the time from the functions below.
static bool clock_fails, calendar_fails;
static long clock_nanoseconds = -1; // -1: as they are

int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*next)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    const int ret = clock_fails ? -1 : next(clock, now);
    if (ret == 0 && clock_nanoseconds >= 0)
        now->tv_nsec = clock_nanoseconds;
    return ret;
}
struct tm *localtime_r(const time_t *now, struct tm *parts) {
    struct tm *(*next)(const time_t *, struct tm *) = dlsym(RTLD_NEXT, "localtime_r");
    return calendar_fails ? NULL : next(now, parts);
}

TEST_THAT(default_shows_microseconds) {
    use_default(RPMA_LOG_LEVEL_ERROR, RPMA_LOG_LEVEL_ERROR);
    clock_nanoseconds = 999999999;
    const char *text = stderr_of(RPMA_LOG_LEVEL_ERROR);
    clock_nanoseconds = -1;
    assert_non_null(strstr(text, ".999999 ["));
    use_default(RPMA_LOG_LEVEL_WARNING, RPMA_LOG_DISABLED);
}

TEST_THAT(default_does_without_the_time) {
    char begin[64];
    snprintf(begin, sizeof(begin), "[%ld] *ERROR* ", (long)syscall(SYS_gettid));
    use_default(RPMA_LOG_LEVEL_ERROR, RPMA_LOG_LEVEL_ERROR);
    for (int i = 0; i < 2; i++) {
        clock_fails = i == 0, calendar_fails = i == 1;
        const char *text = stderr_of(RPMA_LOG_LEVEL_ERROR);
        clock_fails = calendar_fails = false;
        assert_memory_equal(text, begin, strlen(begin));
    }
    use_default(RPMA_LOG_LEVEL_WARNING, RPMA_LOG_DISABLED);
}

TEST_THAT(default_cuts_long_messages) {
    int priority;
    use_default(RPMA_LOG_LEVEL_NOTICE, RPMA_LOG_LEVEL_NOTICE);
    const char *copy = stderr_of(RPMA_LOG_LEVEL_NOTICE);
    assert_in_range(strlen(copy), 1023, 1400);
    assert_in_range(strlen(fake_syslog(&priority)), 1023, 1400);
    assert_int_equal(priority, LOG_LOCAL7 | LOG_NOTICE);
    use_default(RPMA_LOG_LEVEL_WARNING, RPMA_LOG_DISABLED);
}

// openlog() and closelog() would change what the program set for itself.
TEST_THAT(syslog_settings_belong_to_the_program) {
    assert_false(fake_library_imports("openlog"));
    assert_false(fake_library_imports("closelog"));
    assert_true(fake_library_imports("malloc"));
}

int main(int argc, char **argv) {
    (void)rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &threshold_at_start);
    (void)rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &aux_at_start);
    return unit_main(argc, argv);
}
