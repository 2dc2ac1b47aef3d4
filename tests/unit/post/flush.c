// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush.c -- the method of flushes and atomic writes depends on the configuration, RPMA_FLUSH,
// the capabilities and regions of the peer, and the local device; a notice is logged if the
// peer advertises no capabilities; emulated flushes read into memory of the rpma_peer

#include "operation.h"
#include "packed.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WITH_FLUSH = 1 << 11 }; // IBV_QP_EX_WITH_FLUSH: older headers lack the name

static const enum rpma_flush_type types[] = {RPMA_FLUSH_TYPE_PERSISTENT,
                                             RPMA_FLUSH_TYPE_VISIBILITY};
static const struct {
    const char *value;
    enum rpma_flush_mode mode;
    bool warned; // a warning is logged when the rpma_peer is created
} operators[] = {
    {NULL, RPMA_FLUSH_MODE_AUTO},
    {"auto", RPMA_FLUSH_MODE_AUTO},
    {"emulated", RPMA_FLUSH_MODE_EMULATED},
    {"native", RPMA_FLUSH_MODE_NATIVE},
    {"nonsense", RPMA_FLUSH_MODE_AUTO, true},
    {"", RPMA_FLUSH_MODE_AUTO, true},
};
static const unsigned advertised[] = {UNADVERTISED, SERVES, SERVES | SERVES_FLUSH,
                                      SERVES | SERVES_ATOMIC_WRITE,
                                      SERVES | SERVES_FLUSH | SERVES_ATOMIC_WRITE};
// The flush types of a region.
enum { BARE = -1, VISIBILITY = 0x10, PERSISTENT = 0x20 };
static const int regions[] = {BARE, 0, VISIBILITY, PERSISTENT, VISIBILITY | PERSISTENT};

static struct rpma_mr_remote *remotes[LENGTH(regions)];

static void make_regions(void) {
    unsigned char desc[21];
    fixture_descriptor(desc, FIXTURE_REMOTE_ADDR, FIXTURE_REMOTE_SIZE, FIXTURE_REMOTE_RKEY,
                       FIXTURE_EVERY_USAGE);
    for (size_t i = 0; i < LENGTH(regions); i++)
        if (regions[i] == BARE)
            MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &remotes[i]));
        else
            remotes[i] =
                packed_remote(FIXTURE_REMOTE_ADDR, FIXTURE_REMOTE_SIZE, FIXTURE_REMOTE_RKEY,
                              FIXTURE_EVERY_USAGE, (uint8_t)regions[i]);
}

static void peer_of(bool flush, bool atomic_write, size_t o) {
    const bool lacks_flush =
        operators[o].mode == RPMA_FLUSH_MODE_NATIVE && !(flush && BUILD_FLUSHES);
    struct rpma_peer *peer = NULL;
    fixture_reset();
    fake_profile()->has_native_flush = flush;
    fake_profile()->has_native_atomic_write = atomic_write;
    if (operators[o].value)
        setenv("RPMA_FLUSH", operators[o].value, 1);
    unit_begin();
    assert_int_equal(rpma_peer_new(fake_context(0), &peer), 0);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), operators[o].warned || lacks_flush);
    MUST(rpma_peer_delete(&peer));
    fixture_peer(&w);
    unsetenv("RPMA_FLUSH");
}

// A connection on a device with both native operations, or neither.
static void new_conn(bool native, enum rpma_flush_mode mode) {
    peer_of(native, native, 0);
    const struct shape shape = {.flush_mode = mode};
    fixture_request(&w, &shape);
    fixture_establish(&w, &shape);
    MUST(rpma_batch_new(w.h.conn, 3, &w.h.batch));
}

static int flush(enum rpma_flush_type type) {
    return rpma_flush(w.h.conn, w.h.remote, 8, 8, type, RPMA_F_COMPLETION_ALWAYS, NULL);
}

// ---- the flush method ----------------------------------------------------------------------

enum method { READ, NATIVE, REFUSED };

// Order of precedence: the program, RPMA_FLUSH, the peer. Only a program that requires native
// flushes gets an error.
static enum method expected_method(bool possible, enum rpma_flush_mode chosen, bool by_program,
                                   unsigned capabilities, int region,
                                   enum rpma_flush_type type) {
    const int bit = type == RPMA_FLUSH_TYPE_PERSISTENT ? PERSISTENT : VISIBILITY;
    const bool region_allows = region == BARE || region & bit;
    const bool denied = capabilities != UNADVERTISED && (capabilities & SERVES_FLUSH) == 0;
    if (!possible || chosen == RPMA_FLUSH_MODE_EMULATED)
        return READ;
    if (chosen == RPMA_FLUSH_MODE_NATIVE)
        return region_allows ? NATIVE : by_program ? REFUSED : READ;
    return region_allows && !denied ? NATIVE : READ;
}

static void expect_method(enum method method, struct rpma_mr_remote *remote,
                          enum rpma_flush_type type) {
    struct rpma_work o = operation_of(&w, RPMA_WORK_FLUSH);
    o.remote = remote;
    o.flush_type = type;
    struct expected_error refused = {RPMA_E_NOSUPP, "no native flush of this type",
                                     "the remote region allows no native flush of this type",
                                     .logs = type == RPMA_FLUSH_TYPE_PERSISTENT
                                                 ? "has no native persistent flush"
                                                 : "has no native visibility flush",
                                     .any_calls = true};
    if (method == REFUSED)
        EXPECT_ERROR(rpma_flush(w.h.conn, remote, 8, 8, type, 1, NULL), RPMA_E_NOSUPP,
                     refused.condition, refused.cause, .logs = refused.logs);
    else
        MUST(operation_plain(&o, w.h.conn));
    EXPECT_CALLS(method == REFUSED  ? ""
                 : method == NATIVE ? "ibv_wr_start ibv_wr_flush ibv_wr_complete"
                                    : "ibv_post_send");
    for (enum post_method by = 0; by < POST_METHODS; by++) {
        unit_begin();
        const int ret = operation_by(by, &o, &w);
        refused.before = operation_names[by].element;
        if (method == REFUSED)
            unit_expect_error(ret, operation_names[by].function, &refused, __FILE__, __LINE__);
        else
            assert_int_equal(operation_got(by).opcode,
                             method == NATIVE ? SIM_WR_FLUSH : IBV_WR_RDMA_READ);
        assert_int_equal(ret, method == REFUSED ? RPMA_E_NOSUPP : 0);
    }
}

// The method of atomic writes depends on the peer only.
static void expect_atomic_writes(bool native) {
    const struct rpma_work o = operation_of(&w, RPMA_WORK_ATOMIC_WRITE);
    MUST(operation_plain(&o, w.h.conn));
    EXPECT_CALLS(native ? "ibv_wr_start ibv_wr_atomic_write ibv_wr_complete" : "ibv_post_send");
    for (int by = 0; by < POST_METHODS; by++) {
        MUST(operation_by((enum post_method)by, &o, &w));
        assert_int_equal(operation_got((enum post_method)by).opcode,
                         native ? SIM_WR_ATOMIC_WRITE : IBV_WR_RDMA_WRITE);
    }
}

static void expect_methods(bool possible, enum rpma_flush_mode chosen, bool by_program,
                           unsigned capabilities) {
    enum rpma_flush_mode mode = RPMA_FLUSH_MODE_AUTO;
    MUST(rpma_conn_get_flush_mode(w.h.conn, &mode));
    EXPECT_CALLS("");
    assert_int_equal(mode, expected_method(possible, chosen, by_program, capabilities, BARE,
                                           types[0]) == NATIVE
                               ? RPMA_FLUSH_MODE_NATIVE
                               : RPMA_FLUSH_MODE_EMULATED);
    for (size_t r = 0; r < LENGTH(regions); r++)
        for (size_t t = 0; t < LENGTH(types); t++)
            expect_method(expected_method(possible, chosen, by_program, capabilities,
                                          regions[r], types[t]),
                          remotes[r], types[t]);
}

static void decide(bool device, enum rpma_flush_mode program, size_t o, bool incoming) {
    const enum rpma_flush_mode chosen =
        program != RPMA_FLUSH_MODE_AUTO ? program : operators[o].mode;
    const bool possible = device && BUILD_FLUSHES;
    const struct shape shape = {.flush_mode = program, .incoming = incoming};
    peer_of(device, device, o);
    fixture_request(&w, &shape);
    const bool asked = fake_last("rdma_create_qp_ex")->qp.send_ops_flags & WITH_FLUSH;
    assert_int_equal(asked, possible && chosen != RPMA_FLUSH_MODE_EMULATED);
    fixture_connect(&w, &shape);
    MUST(rpma_batch_new(w.h.conn, 3, &w.h.batch));
    make_regions();
    const bool by_program = program == RPMA_FLUSH_MODE_NATIVE;
    expect_methods(possible, chosen, by_program, UNADVERTISED);
    expect_atomic_writes(device && BUILD_WRITES_ATOMICALLY);
    for (size_t i = 0; i < LENGTH(advertised); i++) {
        fixture_apply(&w, (uint8_t)advertised[i]);
        EXPECT_CALLS("");
        expect_methods(possible, chosen, by_program, advertised[i]);
        expect_atomic_writes(
            device && BUILD_WRITES_ATOMICALLY &&
            (advertised[i] == UNADVERTISED || (advertised[i] & SERVES_ATOMIC_WRITE)));
    }
    for (size_t i = 0; i < LENGTH(regions); i++)
        MUST(rpma_mr_remote_delete(&remotes[i]));
    fixture_delete(&w);
}

TEST_THAT(first_usable_flush_method_is_chosen) {
    for (int device = 0; device < 2; device++)
        for (int mode = RPMA_FLUSH_MODE_AUTO; mode <= RPMA_FLUSH_MODE_NATIVE; mode++)
            for (size_t o = 0; o < LENGTH(operators); o++)
                for (int incoming = 0; incoming < 2; incoming++)
                    if (mode != RPMA_FLUSH_MODE_NATIVE || (device && BUILD_FLUSHES))
                        decide(device, (enum rpma_flush_mode)mode, o, incoming);
}

// ---- the notice about a peer without capabilities ------------------------------------------

static void expect_notices(unsigned count, bool native) {
    const struct logged_line *line = logged_line(RPMA_LOG_LEVEL_NOTICE, 0);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_NOTICE), count);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
    if (count == 0)
        return;
    assert_non_null(strstr(line->message,
                           native ? "a native flush is tried" : "an emulated flush is tried"));
    assert_non_null(
        strstr(line->message, native ? "RPMA_FLUSH=emulated" : "RPMA_MR_USAGE_READ_SRC"));
}

// One notice before the first configuration is applied, and one after each configuration
// without capabilities.
TEST_THAT(unadvertised_flush_method_is_logged_once) {
    static const unsigned applied[] = {0,      UNADVERTISED, UNADVERTISED,
                                       SERVES, UNADVERTISED, SERVES | SERVES_FLUSH};
    for (int device = 0; device < 2; device++)
        for (int mode = 0; mode <= (device && BUILD_FLUSHES ? 2 : 1); mode++)
            for (int by = 0; by < POST_METHODS; by++) {
                const bool native = device && BUILD_FLUSHES && mode != RPMA_FLUSH_MODE_EMULATED;
                new_conn(device, (enum rpma_flush_mode)mode);
                struct rpma_work o = operation_of(&w, RPMA_WORK_FLUSH);
                o.flush_type = RPMA_FLUSH_TYPE_VISIBILITY;
                for (size_t i = 0; i < LENGTH(applied); i++) {
                    if (i > 0)
                        fixture_apply(&w, (uint8_t)applied[i]);
                    const bool is_denied = device && BUILD_FLUSHES &&
                                           mode == RPMA_FLUSH_MODE_AUTO && applied[i] == SERVES;
                    assert_int_equal(strstr(logged_text(), "has no native flush") != NULL,
                                     is_denied);
                    assert_int_equal(logged_count(RPMA_LOG_LEVEL_NOTICE), 0);
                    unit_begin();
                    assert_int_equal(operation_by((enum post_method)by, &o, &w), 0);
                    // An explicit mode needs no capabilities of the peer.
                    expect_notices(applied[i] <= UNADVERTISED && mode != RPMA_FLUSH_MODE_NATIVE,
                                   native);
                    MUST(flush(RPMA_FLUSH_TYPE_VISIBILITY));
                    expect_notices(0, native);
                }
            }
}

// A rejected flush is not tried, so it logs no notice.
TEST_THAT(refused_flush_logs_no_fallback) {
    for (int device = 0; device < 2; device++) {
        new_conn(device, RPMA_FLUSH_MODE_AUTO);
        EXPECT_ERROR(
            rpma_flush(w.h.conn, w.h.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, 1, NULL),
            RPMA_E_NOSUPP, "direct write to PMem not enabled", "direct write to PMem");
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_NOTICE), 0);
        MUST(flush(RPMA_FLUSH_TYPE_VISIBILITY));
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_NOTICE), 1);
    }
}

// ---- the local capabilities ----------------------------------------------------------------

// They depend on the device and the build, not on RPMA_FLUSH, which applies to local flushes.
TEST_THAT(capability_equals_the_device_operations) {
    for (unsigned device = 0; device < 4; device++)
        for (size_t o = 0; o < LENGTH(operators); o++) {
            const bool flushes = device & 1 && BUILD_FLUSHES;
            const bool writes_atomically = device & 2 && BUILD_WRITES_ATOMICALLY;
            unsigned char desc[1] = {0};
            bool is_advertised = true, flush = true, atomic_write = true;
            peer_of(device & 1, device & 2, o);
            MUST(rpma_peer_cfg_get_descriptor(w.h.pcfg, desc));
            assert_int_equal(desc[0], UNADVERTISED);
            MUST(rpma_peer_cfg_get_served(w.h.pcfg, &is_advertised, &flush, &atomic_write));
            assert_false(is_advertised || flush || atomic_write);
            MUST(rpma_peer_cfg_set_served_by(w.h.pcfg, w.h.peer));
            EXPECT_CALLS("");
            MUST(rpma_mr_dereg(&w.h.mr));
            MUST(rpma_peer_delete(&w.h.peer)); // the configuration has copied the capabilities
            MUST(rpma_peer_cfg_get_descriptor(w.h.pcfg, desc));
            assert_int_equal(desc[0], SERVES | (flushes ? SERVES_FLUSH : 0) |
                                          (writes_atomically ? SERVES_ATOMIC_WRITE : 0));
            MUST(rpma_peer_cfg_get_served(w.h.pcfg, &is_advertised, &flush, &atomic_write));
            assert_true(is_advertised);
            assert_int_equal(flush, flushes);
            assert_int_equal(atomic_write, writes_atomically);
        }
}

// Only a descriptor with capabilities needs direct write to PMem.
TEST_THAT(capability_applies_without_a_descriptor) {
    fixture_peer(&w); // on a device without native flush
    MUST(rpma_peer_cfg_set_served_by(w.h.pcfg, w.h.peer));
    MUST(rpma_peer_cfg_set_direct_write_to_pmem(w.h.pcfg, false));
    MUST(rpma_mr_dereg(&w.h.mr));
    MUST(rpma_peer_delete(&w.h.peer));
    fake_profile()->has_native_flush = true;
    MUST(rpma_peer_new(fake_context(0), &w.h.peer));
    fixture_request(&w, &(const struct shape){.name = "AUTO"});
    fixture_establish(&w, &(const struct shape){0});
    MUST(rpma_conn_apply_remote_peer_cfg(w.h.conn, w.h.pcfg));
    MUST(flush(RPMA_FLUSH_TYPE_VISIBILITY));
    EXPECT_CALLS("ibv_post_send");
}

// ---- the target of emulated flushes, and the first flush -----------------------------------

// The page is shared, because copy-on-write after a fork would move a private page of the
// parent.
TEST_THAT(flush_target_is_shared_with_children) {
    int status = -1;
    new_conn(false, RPMA_FLUSH_MODE_AUTO);
    MUST(flush(RPMA_FLUSH_TYPE_VISIBILITY));
    volatile unsigned char *const target = (unsigned char *)(uintptr_t)fake_posted(0)->sge.addr;
    *target = 1;
    const pid_t child = fork();
    if (child == 0) {
        *target = 2;
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(*target, 2);
}

// arguments.c tests all errors of the slow path of the first flush; later flushes use the fast
// path. An unknown type is reported before a missing capability of the peer, because it is an
// error of the program.
TEST_THAT(arguments_are_checked_after_a_flush) {
    static const char types_are[] =
        "type not in {RPMA_FLUSH_TYPE_PERSISTENT, RPMA_FLUSH_TYPE_VISIBILITY}";
    new_conn(false, RPMA_FLUSH_MODE_AUTO);
    struct rpma_mr_remote *unused =
        packed_remote(FIXTURE_REMOTE_ADDR, 64, 1, RPMA_MR_USAGE_WRITE_DST, 0);
    for (int round = 0; round < 2; round++) {
        EXPECT_ERROR(rpma_flush(w.h.conn, unused, 0, 8, (enum rpma_flush_type)7, 1, NULL),
                     RPMA_E_INVAL, "type not in", types_are, .logs = "type");
        MUST(flush(RPMA_FLUSH_TYPE_VISIBILITY));
        EXPECT_ERROR(
            rpma_flush(w.h.conn, w.h.remote, 8, 8, RPMA_FLUSH_TYPE_VISIBILITY, 0, NULL),
            RPMA_E_INVAL, "flags == 0", "flags == 0", .logs = "flags");
    }
    MUST(rpma_mr_remote_delete(&unused));
}

// ---- RPMA_FLUSH in the environment of another user -----------------------------------------

static bool set_user_id; // the process has more privileges than its caller

// Like the function of the C library, returns NULL in such a process.
char *secure_getenv(const char *name) {
    return set_user_id ? NULL : getenv(name);
}

// The environment of a caller with fewer privileges must be ignored.
TEST_THAT(environment_is_ignored_in_secure_mode) {
    setenv("RPMA_FLUSH", "nonsense", 1);
    for (int i = 0; i < 2; i++) {
        set_user_id = i;
        logged_forget();
        memset(&w.h, 0, sizeof(w.h));
        MUST(rpma_peer_new(fake_context(0), &w.h.peer));
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), set_user_id ? 0 : 1);
        MUST(rpma_peer_delete(&w.h.peer));
    }
    set_user_id = false;
    unsetenv("RPMA_FLUSH");
}
