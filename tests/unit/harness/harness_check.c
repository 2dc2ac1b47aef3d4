// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// harness_check.c -- the harness over a spoiled rpma_peer_new(): each of its checks fails
//
// The function below stands in front of the library's. Three tests that are right use it, each
// in a process of its own: one expects its success, one its failure, one sweeps it.

#include "sweep.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *spoil; // what is wrong

static bool is(const char *name) {
    return strcmp(spoil, name) == 0;
}

static int real(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr) {
    int (*next)(struct ibv_context *, struct rpma_peer **);
    *(void **)&next = dlsym(RTLD_NEXT, "rpma_peer_new");
    return next(ibv_ctx, peer_ptr);
}

static void do_more(bool has_failed) {
    static void *kept;
    if (is("a leak"))
        kept = FAKE_HOOK(malloc)(8);
    (void)kept;
    if (is("an open descriptor"))
        (void)dup(0);
    if (is("a misuse"))
        FAKE_HOOK(free)(&spoil);
    if (is("a line more") || (has_failed && is("another cause")))
        (void)real(NULL, NULL);
    if (has_failed && is("another function's line"))
        (void)rpma_peer_delete(NULL);
    if (is("a call more")) {
        struct rdma_event_channel *channel = rdma_create_event_channel();
        if (channel)
            rdma_destroy_event_channel(channel);
    }
}

int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr) {
    if (is("no line") || is("another function's line") || is("another cause"))
        (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_DISABLED);
    if (is("another error number")) {
        fake_faults_off();
        fake_fail("ibv_query_device_ex", 1, ENXIO);
    }
    const int ret = real(ibv_ctx, peer_ptr);
    const int error = is("another error number") ? EIO : errno;
    (void)rpma_log_set_threshold(RPMA_LOG_THRESHOLD, RPMA_LOG_LEVEL_DEBUG);
    do_more(ret != 0);
    if (ret && is("an output in spite of the error"))
        *peer_ptr = (struct rpma_peer *)&spoil;
    errno = is("errno cleared") ? 0 : error;
    if (ret && is("an undocumented code"))
        return RPMA_E_NO_EVENT;
    return is("success in spite of the error") ? 0 : ret;
}

// ---- tests that are right ------------------------------------------------------------------

static struct rpma_peer *peer;

static void succeeds(void **state) {
    (void)state;
    MUST(rpma_peer_new(fake_context(0), &peer));
    EXPECT_CALLS("ibv_query_device_ex ibv_alloc_pd");
    MUST(rpma_peer_delete(&peer));
}

static void fails(void **state) {
    (void)state;
    fake_fail("ibv_query_device_ex", 1, EIO);
    WATCH(peer);
    EXPECT_ERROR(rpma_peer_new(fake_context(0), &peer), RPMA_E_PROVIDER,
                 "ibv_query_device_ex() failed", "ibv_query_device_ex()", EIO,
                 "ibv_query_device_ex");
}

static bool make_peer(struct fixture *w, const void *unused) {
    (void)unused;
    return STEP(w, rpma_peer_new(fake_context(0), &w->h.peer));
}

static void is_swept(void **state) {
    (void)state;
    sweep("peer", 4, make_peer, NULL, NULL);
}

static const struct CMUnitTest tests[] = {TEST(succeeds), TEST(fails), TEST(is_swept)};

// A sweep compares its calls with those of a plain build.
#define COUNTS (!BUILD_FLUSHES && !BUILD_WRITES_ATOMICALLY)

// What each of them says of the spoiled function; NULL: it need not notice.
static const struct {
    const char *name, *says[LENGTH(tests)];
} spoils[] = {
    {"nothing"},
    {"a leak", {"1 allocation left", "1 allocation left", "1 allocation left"}},
    {"an open descriptor",
     {"descriptors before", "descriptors before", "a descriptor is left"}},
    {"a misuse", {"is no allocation", "is no allocation", "is no allocation"}},
    {"a line more", {"succeeds and logs a failure", "not one line", "not one log line"}},
    {"no line", {NULL, "not one line", "not one log line"}},
    {"another function's line", {NULL, "another function", "not one log line of the function"}},
    {"another cause", {NULL, "another cause"}},
    {"another error number", {NULL, "another cause"}},
    {"an output in spite of the error",
     {NULL, "failed and wrote peer", "an output was written"}},
    {"an undocumented code",
     {NULL, "= RPMA_E_NO_EVENT instead of RPMA_E_PROVIDER", "which is not documented"}},
    {"success in spite of the error", {NULL, "= 0 instead of RPMA_E_PROVIDER"}},
    {"a call more",
     {"provider calls: ", "provider calls: ",
      COUNTS ? "calls that can fail instead of 4" : NULL}},
    {"errno cleared", {"leaves errno = 0", "leaves errno = 0"}},
};

// Functions that would bypass the hooks of the allocator: librpma imports none of them.
static unsigned count_bypasses(void) {
    static const char *const bypasses[] = {
        "realloc", "aligned_alloc", "strdup", "posix_memalign", "asprintf", "_Znwm", "_Znam"};
    unsigned count = !fake_library_imports("rdma_connect");
    for (size_t i = 0; i < LENGTH(bypasses); i++)
        if (fake_library_imports(bypasses[i])) {
            fprintf(stderr, "librpma.so.0 imports %s, which is not hooked\n", bypasses[i]);
            count++;
        }
    return count;
}

// Runs the test in another process. Returns its result and what it printed.
static int run(size_t test, char *text, size_t size) {
    const int out = memfd_create("output", 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(out, STDOUT_FILENO);
        dup2(out, STDERR_FILENO);
        const int failed = _cmocka_run_group_tests("spoiled", &tests[test], 1, NULL, NULL);
        fflush(NULL);
        _exit(failed);
    }
    int status = -1;
    waitpid(child, &status, 0);
    const ssize_t length = pread(out, text, size - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    close(out);
    return status;
}

int main(void) {
    static char text[65536];
    unsigned wrong = count_bypasses();
    fake_hook_allocator();
    for (size_t i = 0; i < LENGTH(spoils); i++)
        for (size_t k = 0; k < LENGTH(tests); k++) {
            const char *says = spoils[i].says[k];
            spoil = spoils[i].name;
            const int status = run(k, text, sizeof(text));
            if (says ? WIFEXITED(status) && status && strstr(text, says) : status == 0)
                continue;
            // A test that need not notice may fail all the same, but the right library passes.
            if (!says && i != 0)
                continue;
            fprintf(stderr, "%s, \"%s\": status %d, expected \"%s\" in\n%s\n", spoils[i].name,
                    tests[k].name, status, says ? says : "", text);
            wrong++;
        }
    return wrong > 0;
}
