// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush.c -- emulated flushes: the memory that they read into, their conditions, RPMA_FLUSH

#include "world.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct shape outgoing = {.name = "outgoing"};
static void *const context = (void *)0x1234567890;

static void new_conn(void) {
    world_conn(&w, &outgoing);
}

static const struct fake_post *posted(void) {
    EXPECT_CALLS("ibv_post_send");
    return &fake_last("ibv_post_send")->send;
}

static int flush(enum rpma_flush_type type) {
    return rpma_flush(w.h.conn, w.h.remote, 8, 8, type, RPMA_F_COMPLETION_ALWAYS, context);
}

// ---- reads ---------------------------------------------------------------------------------

static struct rpma_mr_remote *region(uint64_t size, uint8_t usage) {
    unsigned char desc[21];
    struct rpma_mr_remote *remote = NULL;
    world_descriptor(desc, WORLD_REMOTE_ADDR, size, WORLD_REMOTE_RKEY, usage);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &remote));
    return remote;
}

// The first flush goes the long way, where arguments.c has every refusal; later ones do not.
TEST_THAT(flags_are_checked_behind_a_flush) {
    new_conn();
    MUST(flush(RPMA_FLUSH_TYPE_VISIBILITY));
    EXPECT_ERROR(rpma_flush(w.h.conn, w.h.remote, 8, 8, RPMA_FLUSH_TYPE_VISIBILITY, 0, context),
                 RPMA_E_INVAL, "flags == 0", "flags == 0", .logs = "flags");
}

// After a fork, copy-on-write would give the parent another page, so the page is shared.
TEST_THAT(flush_target_is_shared_with_children) {
    int status = -1;
    new_conn();
    MUST(flush(RPMA_FLUSH_TYPE_VISIBILITY));
    volatile unsigned char *const target = (unsigned char *)(uintptr_t)posted()->sge.addr;
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

// An unknown type is an error of the program, so it is reported before the other side's lacks.
TEST_THAT(unknown_flush_type_comes_first) {
    new_conn();
    struct rpma_mr_remote *remote = region(64, RPMA_MR_USAGE_WRITE_DST);
    EXPECT_ERROR(rpma_flush(w.h.conn, remote, 0, 8, (enum rpma_flush_type)7, 1, context),
                 RPMA_E_INVAL, "type not in",
                 "type not in {RPMA_FLUSH_TYPE_PERSISTENT, RPMA_FLUSH_TYPE_VISIBILITY}",
                 .logs = "type");
    MUST(rpma_mr_remote_delete(&remote));
}

// ---- RPMA_FLUSH ----------------------------------------------------------------------------

// What each choice leads to is in flush_mode.c; a value that is none, or that no device of the
// build can follow, is told when the peer is made, and the device decides.
TEST_THAT(wrong_choice_of_the_operator_is_told) {
    static const struct {
        const char *value;
        bool device, native, warned;
    } cases[] = {
        {NULL, true, true, false},        {"auto", true, true, false},
        {"emulated", true, false, false}, {"native", true, true, !BUILD_FLUSHES},
        {"native", false, false, true},   {"nonsense", true, true, true},
        {"", false, false, true},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const bool native = cases[i].native && BUILD_FLUSHES;
        world_anew();
        fake_device()->native_flush = cases[i].device;
        if (cases[i].value)
            setenv("RPMA_FLUSH", cases[i].value, 1);
        unit_begin();
        assert_int_equal(rpma_peer_new(fake_context(0), &w.h.peer), 0);
        unsetenv("RPMA_FLUSH");
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), cases[i].warned);
        world_request(&w, &outgoing);
        world_up(&w, &outgoing);
        w.h.remote = region(64, WORLD_EVERY_USAGE);
        MUST(flush(RPMA_FLUSH_TYPE_VISIBILITY));
        EXPECT_CALLS(native ? "ibv_wr_start ibv_wr_flush ibv_wr_complete" : "ibv_post_send");
    }
}

static bool set_user_id; // the process has more rights than its caller

// The function of the C library returns NULL in a process of that kind.
char *secure_getenv(const char *name) {
    return set_user_id ? NULL : getenv(name);
}

// The caller of a program that has more rights must not choose for it.
TEST_THAT(environment_of_a_stranger_is_ignored) {
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
