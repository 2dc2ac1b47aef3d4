// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// log.c -- thresholds, log functions of the program, the default function, and RPMA_LOG, with
// whose values meson.build runs this executable

#include "fixture.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

// A message of each level, from calls that need few objects.
static const struct message {
    enum rpma_log_level level;
    int severity;
    const char *name, *tag, *file, *text; // the text includes the function
} messages[] = {
    {RPMA_LOG_LEVEL_FATAL, LOG_CRIT, "fatal", NULL, NULL, NULL},
    {RPMA_LOG_LEVEL_ERROR, LOG_ERR, "error", "*ERROR* ", "mr.cc",
     "rpma_mr_remote_delete: mr_ptr == NULL"},
    {RPMA_LOG_LEVEL_WARNING, LOG_WARNING, "warning", "*WARN*  ", "objects.cc",
     "rpma_peer_new: ibv_alloc_pd() failed, the provider gives no reason"},
    // A text with control characters that is too long.
    {RPMA_LOG_LEVEL_NOTICE, LOG_NOTICE, "notice", "*NOTE*  ", "conn_req.cc",
     "rpma_conn_req_new: requesting a connection to two\\nlines\\x1b[2J"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...:1"},
    {RPMA_LOG_LEVEL_INFO, LOG_INFO, "info", "*INFO*  ", "config.cc",
     "rpma_peer_cfg_from_descriptor: direct write to PMem: yes, native flush: not advertised, "
     "native "
     "atomic write: not advertised"},
    {RPMA_LOG_LEVEL_DEBUG, LOG_DEBUG, "debug", "*DEBUG* ", "mr.cc",
     "rpma_mr_remote_from_descriptor: remote region: addr=0x1, size=2, rkey=0x3, usage=0x1"},
};

static void log_at(enum rpma_log_level level) {
    static char name[3000];
    struct handles h = {0};
    unsigned char desc[21];
    fixture_descriptor(desc, 1, 2, 3, 1);
    switch (level) {
    case RPMA_LOG_LEVEL_ERROR:
        (void)rpma_mr_remote_delete(NULL);
        break;
    case RPMA_LOG_LEVEL_WARNING:
        fake_fail("ibv_alloc_pd", 1, 0);
        (void)rpma_peer_new(fake_context(0), &h.peer);
        fake_faults_off();
        break;
    case RPMA_LOG_LEVEL_NOTICE:
        memset(name, 'x', sizeof(name) - 1);
        memcpy(name, "two\nlines\x1b[2J", strlen("two\nlines\x1b[2J"));
        (void)rpma_conn_req_new(w.h.peer, name, "1", NULL, &h.req);
        (void)rpma_conn_req_delete(&h.req);
        break;
    case RPMA_LOG_LEVEL_INFO:
        (void)rpma_peer_cfg_from_descriptor(desc, sizeof(desc), &h.pcfg);
        (void)rpma_peer_cfg_delete(&h.pcfg);
        break;
    default:
        (void)rpma_mr_remote_from_descriptor(desc, sizeof(desc), &h.remote);
        (void)rpma_mr_remote_delete(&h.remote);
    }
}

static int flags_of_stderr; // FD_CLOEXEC: fd 2 is a descriptor of a device

// Returns the text that a message of that level writes to fd 2.
static const char *stderr_of(enum rpma_log_level level) {
    static char text[4096];
    FILE *file = tmpfile();
    fflush(stderr);
    const int kept = dup(2);
    dup2(fileno(file), 2);
    fcntl(2, F_SETFD, flags_of_stderr);
    log_at(level);
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
    rewind(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

// ---- thresholds ----------------------------------------------------------------------------

// With PRIVILEGED, behaves as in a program with more privileges than its caller.
char *secure_getenv(const char *name) {
    return getenv("PRIVILEGED") ? NULL : getenv(name);
}

// The level in RPMA_LOG.
static int level_of_variable(void) {
    const char *value = secure_getenv("RPMA_LOG");
    for (size_t i = 0; value && i < LENGTH(messages); i++)
        if (strcasecmp(value, messages[i].name) == 0)
            return (int)i;
    return RPMA_LOG_DISABLED;
}

static enum rpma_log_level threshold_at_start, aux_at_start;
static bool info_at_start; // an INFO message was printed to stderr

TEST_THAT(thresholds_have_the_documented_defaults) {
    assert_int_equal(threshold_at_start, RPMA_LOG_LEVEL_WARNING);
    assert_int_equal(aux_at_start, RPMA_LOG_DISABLED);
    assert_int_equal(info_at_start, level_of_variable() >= RPMA_LOG_LEVEL_INFO);
}

static void set_thresholds(int threshold, int aux) {
    enum rpma_log_level level, aux_level;
    MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD, (enum rpma_log_level)threshold));
    MUST(rpma_log_set_threshold(RPMA_LOG_THRESHOLD_AUX, (enum rpma_log_level)aux));
    MUST(rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &level));
    MUST(rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &aux_level));
    assert_int_equal(level, threshold);
    assert_int_equal(aux_level, aux);
}

// Expects one line in the documented format, or no text.
static void expect_line(const char *text, const char *begin, const struct message *m,
                        bool any) {
    char pattern[512];
    regex_t expression;
    regmatch_t match;
    if (!any) {
        assert_string_equal(text, "");
        return;
    }
    snprintf(pattern, sizeof(pattern), "^%s\\%.*s\\* *%s: +[0-9]+: ", begin,
             (int)strcspn(m->tag + 1, "*") + 1, m->tag, m->file);
    assert_int_equal(regcomp(&expression, pattern, REG_EXTENDED), 0);
    if (regexec(&expression, text, 1, &match, 0) != 0 ||
        strncmp(text + match.rm_eo, m->text, strlen(m->text)) != 0 || !strstr(text, m->tag) ||
        strcspn(text, "\n") + 1 < strlen(text))
        fail_msg("\"%s\", expected: \"%s%s\"", text, pattern, m->text);
    regfree(&expression);
    assert_int_equal(strlen(text), match.rm_eo + (int)strlen(m->text) + 1);
}

// Expects these arguments of the log function of the program.
static void expect_logged(const struct message *m) {
    const struct logged_line *line = logged_line(m->level, 0);
    char text[1200];
    snprintf(text, sizeof(text), "%s: %s", line->function, line->message);
    assert_string_equal(line->file, m->file);
    assert_true(line->line > 0);
    assert_memory_equal(text, m->text, strlen(m->text));
    assert_int_equal(line->format[strlen(line->format) - 1], '\n');
}

static void expect_readers(const struct message *m, int threshold, int aux, bool own) {
    char time[256];
    int priority;
    const bool passes = (int)m->level <= threshold;
    const bool copied = passes && !own && (int)m->level <= aux;
    snprintf(time, sizeof(time),
             "[A-Z][a-z]{2} [0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6} \\[%ld\\] ",
             (long)syscall(SYS_gettid));
    logged_start();
    if (!own)
        (void)rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
    set_thresholds(threshold, aux);
    fake_syslog_forget();
    logged_forget();
    expect_line(stderr_of(m->level), time, m, copied || (int)m->level <= level_of_variable());
    expect_line(fake_syslog(&priority), "", m, passes && !own);
    assert_int_equal(priority, passes && !own ? LOG_LOCAL7 | m->severity : -1);
    assert_int_equal(logged_count(m->level), passes && own);
    if (passes && own)
        expect_logged(m);
    if (m->level <= RPMA_LOG_LEVEL_WARNING) // a failure
        assert_string_equal(
            rpma_err_last_failure(NULL),
            passes || (int)m->level <= level_of_variable() ? strstr(m->text, ": ") + 2 : "");
}

// Messages up to the threshold are passed to the log function; the default function also
// prints messages up to AUX to stderr. RPMA_LOG prints messages to stderr with any settings,
// but no message twice.
TEST_THAT(only_messages_of_the_settings_are_formatted) {
    MUST(rpma_peer_new(fake_context(0), &w.h.peer));
    for (int i = 0; i < 2 * 7 * 7; i++)
        for (size_t m = RPMA_LOG_LEVEL_ERROR; m < LENGTH(messages); m++)
            expect_readers(&messages[m], i / 2 % 7 - 1, i / 2 / 7 - 1, i % 2);
}

// Device names fill the space for advice.
TEST_THAT(longest_failure_is_complete_in_syslog) {
    static const struct message longest = {
        .tag = "*ERROR* ",
        .file = "cm.cc",
        .text =
            "rpma_conn_req_new: rdma_resolve_addr("
            "src_addr=[fd00:1111:2222:3333:4444:5555:6666:7777]:65535, dst_addr=[::2]:7205, "
            "timeout_ms=2147483647) failed: No such device (19); 'ip route get ADDRESS' shows "
            "the "
            "network device of the route, 'rdma link' the RDMA device of each; if it has one, "
            "this process may not open it: the permissions of /dev/infiniband, the container's "
            "list of devices, or the rdma cgroup (hca_handle in rdma.max); RDMA devices of "
            "this "
            "machine: fake0 fake1 a_device_with_a_long_name a_device_with_a_long_name "
            "a_device_with_a_long_name ..."};
    int priority;
    fake_device()->addresses = 2; // with an IPv6 address
    fake_device()->more_devices = 40;
    fake_fail("rdma_resolve_addr", 1, ENODEV);
    MUST(rpma_peer_new(fake_context(0), &w.h.peer));
    MUST(rpma_conn_cfg_new(&w.h.cfg));
    MUST(rpma_conn_cfg_set_source_addr(w.h.cfg, "fd00:1111:2222:3333:4444:5555:6666:7777"));
    MUST(rpma_conn_cfg_set_source_port(w.h.cfg, 65535));
    MUST(rpma_conn_cfg_set_timeout(w.h.cfg, INT_MAX));
    MUST(rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION));
    set_thresholds(RPMA_LOG_LEVEL_ERROR, RPMA_LOG_DISABLED);
    assert_int_equal(rpma_conn_req_new(w.h.peer, "many", "7205", w.h.cfg, &w.h.req),
                     RPMA_E_PROVIDER);
    expect_line(fake_syslog(&priority), "", &longest, true);
}

// ---- functions of the program --------------------------------------------------------------

static int depth;

static void logs_again(enum rpma_log_level level, const char *file_name, const int line_no,
                       const char *function_name, const char *message_format, ...) {
    (void)level, (void)file_name, (void)line_no, (void)function_name, (void)message_format;
    if (depth++ < 5) {
        errno = ENOENT;
        log_at(RPMA_LOG_LEVEL_ERROR);
    } else {
        (void)rpma_log_set_function(NULL); // a log function may do even this
    }
}

// A log function may call the library and change errno; the caller gets the errno of the
// provider.
TEST_THAT(log_function_may_call_the_library) {
    struct rpma_peer *peer = NULL;
    depth = 0;
    fake_fail("ibv_alloc_pd", 1, EACCES);
    MUST(rpma_log_set_function(logs_again));
    assert_int_equal(rpma_peer_new(fake_context(0), &peer), RPMA_E_PROVIDER);
    assert_int_equal(errno, EACCES);
    assert_int_equal(depth, 6);
    assert_non_null(strstr(rpma_err_last_failure(NULL), "ibv_alloc_pd() failed: Permission"));
}

// ---- the last failure ----------------------------------------------------------------------

static void *fails_in_new_thread(void *unused) {
    (void)unused;
    assert_string_equal(rpma_err_last_failure(NULL), "");
    log_at(RPMA_LOG_LEVEL_ERROR);
    return NULL;
}

TEST_THAT(last_failure_is_kept_until_the_next_of_its_thread) {
    pthread_t thread;
    struct ibv_wc wc;
    MUST(rpma_peer_new(fake_context(0), &w.h.peer));
    MUST(rpma_cq_new(w.h.peer, NULL, &w.h.shared_cq));
    assert_int_equal(rpma_peer_delete(NULL), RPMA_E_INVAL);
    assert_int_equal(rpma_cq_get_wc(w.h.shared_cq, 1, &wc, NULL), RPMA_E_NO_COMPLETION);
    assert_int_equal(rpma_cq_delete(&w.h.shared_cq), 0);
    assert_int_equal(pthread_create(&thread, NULL, fails_in_new_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(rpma_err_last_failure(NULL), "peer_ptr == NULL");
}

// ---- the time ------------------------------------------------------------------------------

// These functions override the ones of libc in the library.
static bool clock_fails, calendar_fails;
static long clock_nanoseconds = -1; // -1: the real ones

int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*next)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    const int ret = clock_fails ? -1 : next(clock, now);
    if (ret == 0 && clock_nanoseconds >= 0)
        now->tv_nsec = clock_nanoseconds;
    return ret;
}
struct tm *localtime_r(const time_t *now, struct tm *parts) {
    struct tm *(*next)(const time_t *, struct tm *) = dlsym(RTLD_NEXT, "localtime_r");
    if (clock_nanoseconds >= 0) { // a fixed time, with a day below 10
        *parts = (struct tm){.tm_mon = 8, .tm_mday = 5, .tm_hour = 3, .tm_min = 4, .tm_sec = 6};
        return parts;
    }
    return calendar_fails ? NULL : next(now, parts);
}

static const char *error_on_stderr(void) {
    (void)rpma_log_set_function(RPMA_LOG_USE_DEFAULT_FUNCTION);
    set_thresholds(RPMA_LOG_LEVEL_ERROR, RPMA_LOG_LEVEL_ERROR);
    return stderr_of(RPMA_LOG_LEVEL_ERROR);
}

// A program that starts with a closed standard error may get a device with its number.
TEST_THAT(default_log_function_writes_no_line_to_a_device_with_the_number_of_stderr) {
    flags_of_stderr = FD_CLOEXEC;
    const char *text = error_on_stderr();
    flags_of_stderr = 0;
    assert_string_equal(text, "");
}

TEST_THAT(default_log_line_has_microseconds_or_no_time) {
    char begin[64];
    snprintf(begin, sizeof(begin), "[%ld] *ERROR* ", (long)syscall(SYS_gettid));
    for (int i = 0; i < 3; i++) {
        clock_fails = i == 0, calendar_fails = i == 1,
        clock_nanoseconds = i == 2 ? 999999999 : -1;
        const char *text = error_on_stderr();
        clock_fails = calendar_fails = false, clock_nanoseconds = -1;
        if (i < 2)
            assert_memory_equal(text, begin, strlen(begin));
        else
            assert_memory_equal(text, "Sep 05 03:04:06.999999 [", 24);
    }
}

int main(int argc, char **argv) {
    (void)rpma_log_get_threshold(RPMA_LOG_THRESHOLD, &threshold_at_start);
    (void)rpma_log_get_threshold(RPMA_LOG_THRESHOLD_AUX, &aux_at_start);
    info_at_start = *stderr_of(RPMA_LOG_LEVEL_INFO);
    return unit_main(argc, argv);
}
