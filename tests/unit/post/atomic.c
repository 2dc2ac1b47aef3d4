// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// atomic.c -- remote atomics: their execution over memory of a target, and their log lines;
// requests.c has the request for each, work_refused.c what is refused

#include "target.h"

// Who has the key may use the memory: it stands in a line for debugging, and so does not stand
// what lies in its place in other requests.
TEST_THAT(log_lines_name_the_request) {
    static const struct {
        enum rpma_work_type kind;
        const char *logs;
    } cases[] = {
        {RPMA_WORK_FETCH_ADD, "opcode=IBV_WR_ATOMIC_FETCH_AND_ADD, remote_addr=0x10018, "},
        {RPMA_WORK_COMPARE_SWAP, "opcode=IBV_WR_ATOMIC_CMP_AND_SWP, remote_addr=0x10018, "}};
    world_conn(&w, &(const struct shape){0});
    struct rpma_mr_remote *words =
        packed_remote(WORLD_REMOTE_ADDR, 64, 78, WORLD_EVERY_USAGE, 1);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rpma_work o = operation_of(&w, cases[i].kind);
        o.remote = words;
        o.remote_offset = 24;
        fake_fail("ibv_post_send", 1, EIO);
        EXPECT_ERROR(rpma_post(w.h.conn, &o, 1, NULL), RPMA_E_PROVIDER,
                     "ibv_post_send() failed", "ibv_post_send()", EIO, "ibv_post_send",
                     cases[i].logs, .before = "work[0]: ");
        assert_non_null(strstr(logged_text(), "rkey=0x4e, "));
        assert_non_null(strstr(logged_text(), "send_flags=IBV_SEND_FENCE|IBV_SEND_SIGNALED"));
    }
    MUST(rpma_mr_remote_delete(&words));
}

// ---- execution -----------------------------------------------------------------------------

// To a word of a target region, of which the newest content is found after a power failure that
// spares everything.
static struct rpma_work target_atomic(enum rpma_work_type kind, unsigned conn, size_t offset,
                                      uint64_t compare, uint64_t value) {
    return (struct rpma_work){.type = kind,
                              .remote = target_remotes[0],
                              .remote_offset = offset,
                              .local = {target_worlds[conn].h.mr, 32, 8},
                              .value = value,
                              .compare = compare,
                              .flags = RPMA_F_COMPLETION_ALWAYS};
}

static uint64_t found(size_t offset) {
    uint64_t word;
    fake_power_failure(UINT64_MAX);
    memcpy(&word, target_found[0] + offset, sizeof(word));
    return word;
}

static uint64_t result(unsigned conn) {
    uint64_t word;
    memcpy(&word, target_worlds[conn].memory + 32, sizeof(word));
    return word;
}

// One after another, on two connections. The neighbours of the word stay as they are.
TEST_THAT(words_change_as_the_operands_say) {
#define ADD(conn, value, before, after) \
    { RPMA_WORK_FETCH_ADD, conn, 77, value, before, after }
#define SWAP(conn, compare, value, before, after) \
    { RPMA_WORK_COMPARE_SWAP, conn, compare, value, before, after }
    static const struct {
        enum rpma_work_type kind;
        unsigned conn;
        uint64_t compare, value, before, after;
    } cases[] = {
        ADD(0, 5, 0, 5),
        ADD(1, 0, 5, 5),
        ADD(0, UINT64_MAX - 1, 5, 3), // modulo 2^64
        SWAP(0, 4, 9, 3, 3),
        SWAP(1, 3, 0x0102030405060708, 3, 0x0102030405060708),
        SWAP(0, 0x0102030405060708, 0, 0x0102030405060708, 0),
        SWAP(0, 0, 0, 0, 0),
    };
    for (enum target_way way = 0; way < TARGET_WAYS; way++) {
        world_anew();
        target_begin(false);
        for (size_t i = 0; i < LENGTH(cases); i++) {
            const unsigned conn = cases[i].conn;
            const struct step step = {
                target_atomic(cases[i].kind, conn, 8, cases[i].compare, cases[i].value), conn};
            target_run(&step, 1, way);
            assert_int_equal(result(conn), cases[i].before);
            assert_int_equal(found(8), cases[i].after);
        }
        assert_int_equal(found(0), 0);
        assert_int_equal(found(16), 0);
        target_end();
    }
}

// The connection is broken then, and nothing behind it is executed.
TEST_THAT(targets_refuse_what_they_do_not_serve) {
    for (int i = 0; i < 3; i++) {
        world_anew();
        target_begin(false);
        struct rpma_work o = target_atomic(RPMA_WORK_FETCH_ADD, 0, 8, 0, 1);
        if (i == 0)
            o.remote_offset = (TARGET_SIZE | 7) - 7; // three bytes of the word are there
        else if (i == 1)
            fake_target_without_atomics(target_regions[0].rkey);
        target_run(&(const struct step){o, 0}, 1, TARGET_ONE_BY_ONE);
        target_run(&(const struct step){target_write(0, 0, 16, 8), 0}, 1, TARGET_ONE_BY_ONE);
        assert_int_equal(found(8), i == 2);
        assert_int_equal(found(16) != 0, i == 2);
        target_end();
    }
}
