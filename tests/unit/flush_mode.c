// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// flush_mode.c -- who decides how a connection flushes and writes atomically: the program, the
// operator, the other side, the own device.

#include "operation.h"

#include <stdlib.h>

enum { WITH_FLUSH = 1 << 11 }; // IBV_QP_EX_WITH_FLUSH: older headers lack the name

static struct world w;
static const char eight[9] = "8 bytes!";

// The warnings that the statement of the other side brings.
static unsigned apply(unsigned byte) {
    world_apply(&w, (uint8_t)byte);
    EXPECT_CALLS("");
    return logged_count(RPMA_LOG_LEVEL_WARNING);
}

static int flush(enum rpma_flush_type type) {
    return rpma_flush(w.h.conn, w.h.remote, 8, 8, type, RPMA_F_COMPLETION_ALWAYS, NULL);
}

static void expect_flushes(bool native) {
    static const enum rpma_flush_type types[] = {RPMA_FLUSH_TYPE_VISIBILITY,
                                                 RPMA_FLUSH_TYPE_PERSISTENT};
    for (size_t i = 0; i < LENGTH(types); i++) {
        struct rpma_batch *batch = NULL;
        MUST(flush(types[i]));
        EXPECT_CALLS(native ? "ibv_wr_start ibv_wr_flush ibv_wr_complete" : "ibv_post_send");
        MUST(rpma_batch_new(w.h.conn, 1, &batch));
        MUST(rpma_batch_flush(batch, w.h.remote, 8, 8, types[i], 1, NULL));
        MUST(rpma_batch_post(batch, NULL));
        EXPECT_CALLS(native ? "ibv_wr_start ibv_wr_flush ibv_wr_complete" : "ibv_post_send");
        MUST(rpma_batch_delete(&batch));
    }
}

static void expect_atomic_writes(bool native) {
    struct rpma_batch *batch = NULL;
    for (int flags = 1; flags <= RPMA_F_COMPLETION_ALWAYS; flags += 2) {
        MUST(rpma_atomic_write(w.h.conn, w.h.remote, 8, eight, flags, NULL));
        EXPECT_CALLS(native ? "ibv_wr_start ibv_wr_atomic_write ibv_wr_complete"
                            : "ibv_post_send");
    }
    MUST(rpma_batch_new(w.h.conn, 1, &batch));
    MUST(rpma_batch_atomic_write(batch, w.h.remote, 8, eight, 1, NULL));
    MUST(rpma_batch_post(batch, NULL));
    EXPECT_CALLS(native ? "ibv_wr_start ibv_wr_atomic_write ibv_wr_complete" : "ibv_post_send");
    MUST(rpma_batch_delete(&batch));
}

// A connection on a device that has both operations, or neither.
static void new_conn(bool native, enum rpma_flush_mode mode) {
    fake_device()->native_flush = fake_device()->native_atomic_write = native;
    world_conn(&w, &(const struct shape){.flush_mode = mode});
}

// ---- who decides ---------------------------------------------------------------------------

static const struct {
    const char *value;
    enum rpma_flush_mode mode;
} operators[] = {
    {NULL, RPMA_FLUSH_MODE_AUTO},
    {"auto", RPMA_FLUSH_MODE_AUTO},
    {"emulated", RPMA_FLUSH_MODE_EMULATED},
    {"native", RPMA_FLUSH_MODE_NATIVE},
};

static const unsigned statements[] = {SILENT, SERVES, SERVES | SERVES_FLUSH,
                                      SERVES | SERVES_ATOMIC_WRITE,
                                      SERVES | SERVES_FLUSH | SERVES_ATOMIC_WRITE};

// The first that chooses counts: the program, then the operator.
static enum rpma_flush_mode choice(enum rpma_flush_mode program,
                                   enum rpma_flush_mode operators) {
    return program != RPMA_FLUSH_MODE_AUTO ? program : operators;
}

static bool is_native(bool device, enum rpma_flush_mode chosen, unsigned statement) {
    const bool denied = (statement & SERVES) == SERVES && (statement & SERVES_FLUSH) == 0;
    return device && BUILD_FLUSHES &&
           (chosen == RPMA_FLUSH_MODE_NATIVE || (chosen == RPMA_FLUSH_MODE_AUTO && !denied));
}

static void decide(bool device, enum rpma_flush_mode program, size_t o, bool incoming) {
    const enum rpma_flush_mode chosen = choice(program, operators[o].mode);
    const bool possible = device && BUILD_FLUSHES;
    const struct shape shape = {.flush_mode = program, .incoming = incoming};
    fake_reset();
    fake_device()->native_flush = fake_device()->native_atomic_write = device;
    if (operators[o].value)
        setenv("RPMA_FLUSH", operators[o].value, 1);
    world_peer(&w);
    unsetenv("RPMA_FLUSH");
    world_request(&w, &shape);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING),
                     program == RPMA_FLUSH_MODE_NATIVE && !possible);
    const bool asked = fake_last("rdma_create_qp_ex")->qp.send_ops_flags & WITH_FLUSH;
    assert_int_equal(asked, possible && chosen != RPMA_FLUSH_MODE_EMULATED);
    world_connect(&w, &shape);
    expect_flushes(is_native(device, chosen, SILENT));
    for (size_t i = 0; i < LENGTH(statements); i++) {
        const bool native = is_native(device, chosen, statements[i]);
        assert_int_equal(apply(statements[i]),
                         native && !is_native(device, RPMA_FLUSH_MODE_AUTO, statements[i]));
        expect_flushes(native);
    }
    world_drop(&w);
}

static void first_choice_counts(void **state) {
    (void)state;
    for (int device = 0; device < 2; device++)
        for (int mode = RPMA_FLUSH_MODE_AUTO; mode <= RPMA_FLUSH_MODE_NATIVE; mode++)
            for (size_t o = 0; o < LENGTH(operators); o++)
                for (int incoming = 0; incoming < 2; incoming++)
                    decide(device, (enum rpma_flush_mode)mode, o, incoming);
}

// Nobody but the other side has a say in atomic writes.
static void atomic_writes_follow_the_other_side(void **state) {
    (void)state;
    for (int mode = RPMA_FLUSH_MODE_AUTO; mode <= RPMA_FLUSH_MODE_NATIVE; mode++)
        for (int device = 0; device < 2; device++) {
            const bool possible = device && BUILD_WRITES_ATOMICALLY;
            new_conn(device, (enum rpma_flush_mode)mode);
            expect_atomic_writes(possible);
            for (size_t i = 0; i < LENGTH(statements); i++) {
                apply(statements[i]);
                expect_atomic_writes(possible && (statements[i] == SILENT ||
                                                  (statements[i] & SERVES_ATOMIC_WRITE)));
            }
            world_drop(&w);
        }
}

// A batch keeps its operations as they were added.
static void added_operations_stay(void **state) {
    (void)state;
    new_conn(true, RPMA_FLUSH_MODE_AUTO);
    MUST(rpma_batch_new(w.h.conn, 4, &w.h.batch));
    for (int i = 0; i < 2; i++) {
        MUST(
            rpma_batch_flush(w.h.batch, w.h.remote, 8, 8, RPMA_FLUSH_TYPE_VISIBILITY, 1, NULL));
        MUST(rpma_batch_atomic_write(w.h.batch, w.h.remote, 8, eight, 1, NULL));
        apply(SERVES);
    }
    MUST(rpma_batch_post(w.h.batch, NULL));
    assert_int_equal(fake_posted(0)->opcode, BUILD_FLUSHES ? FAKE_WR_FLUSH : IBV_WR_RDMA_READ);
    assert_int_equal(fake_posted(1)->opcode,
                     BUILD_WRITES_ATOMICALLY ? FAKE_WR_ATOMIC_WRITE : IBV_WR_RDMA_WRITE);
    assert_int_equal(fake_posted(2)->opcode, IBV_WR_RDMA_READ);
    assert_int_equal(fake_posted(3)->opcode, IBV_WR_RDMA_WRITE);
    world_drop(&w);
}

// ---- what this side states -----------------------------------------------------------------

// By its device and its build; what the operator chose for its own flushes does not count.
static void statement_is_what_the_device_serves(void **state) {
    (void)state;
    for (unsigned device = 0; device < 4; device++)
        for (size_t o = 0; o < LENGTH(operators); o++) {
            const bool flushes = device & 1, writes_atomically = device & 2;
            unsigned char desc[1] = {0};
            fake_reset();
            fake_device()->native_flush = flushes;
            fake_device()->native_atomic_write = writes_atomically;
            if (operators[o].value)
                setenv("RPMA_FLUSH", operators[o].value, 1);
            world_peer(&w);
            unsetenv("RPMA_FLUSH");
            MUST(rpma_peer_cfg_get_descriptor(w.h.pcfg, desc));
            assert_int_equal(desc[0], SILENT);
            MUST(rpma_peer_cfg_set_native(w.h.pcfg, w.h.peer));
            EXPECT_CALLS("");
            MUST(rpma_mr_dereg(&w.h.mr));
            MUST(rpma_peer_delete(&w.h.peer)); // the configuration has a copy
            MUST(rpma_peer_cfg_get_descriptor(w.h.pcfg, desc));
            assert_int_equal(
                desc[0],
                SERVES | (flushes && BUILD_FLUSHES ? SERVES_FLUSH : 0) |
                    (writes_atomically && BUILD_WRITES_ATOMICALLY ? SERVES_ATOMIC_WRITE : 0));
            world_drop(&w);
        }
}

// Applied without the way through a descriptor, a statement needs no direct write to PMem.
static void statement_holds_without_a_descriptor(void **state) {
    (void)state;
    world_peer(&w); // on a device without native flush
    MUST(rpma_peer_cfg_set_native(w.h.pcfg, w.h.peer));
    MUST(rpma_peer_cfg_set_direct_write_to_pmem(w.h.pcfg, false));
    MUST(rpma_mr_dereg(&w.h.mr));
    MUST(rpma_peer_delete(&w.h.peer));
    fake_device()->native_flush = true;
    MUST(rpma_peer_new(fake_context(0), &w.h.peer));
    world_request(&w, &(const struct shape){.name = "AUTO"});
    MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
    MUST(rpma_conn_apply_remote_peer_cfg(w.h.conn, w.h.pcfg));
    MUST(flush(RPMA_FLUSH_TYPE_VISIBILITY));
    EXPECT_CALLS("ibv_post_send");
    world_drop(&w);
}

int main(void) {
    unsetenv("RPMA_FLUSH");
    const struct CMUnitTest tests[] = {
        TEST(first_choice_counts),
        TEST(atomic_writes_follow_the_other_side),
        TEST(added_operations_stay),
        TEST(statement_is_what_the_device_serves),
        TEST(statement_holds_without_a_descriptor),
    };
    return UNIT_RUN("flush_mode", tests);
}
