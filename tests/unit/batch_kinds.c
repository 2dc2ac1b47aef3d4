// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch_kinds.c -- every kind of operation: a batch posts what the plain function posts, byte
// by byte, and refuses what it refuses

#include "operation.h"

#include <stdio.h>

enum { MOST = 64 };

static struct world w;
static struct rpma_mr_remote *misaligned;
static char bytes[8];

static const int flags[] = {RPMA_F_COMPLETION_ON_ERROR, RPMA_F_COMPLETION_ALWAYS, 1 << 4,
                            RPMA_F_COMPLETION_ALWAYS | RPMA_F_INLINE, -1};
static const size_t lengths[] = {0, 1, 8, WORLD_MEMORY_SIZE, UINT32_MAX};
static const size_t offsets[] = {0, 8, WORLD_REMOTE_SIZE - 8, WORLD_REMOTE_SIZE - 3,
                                 SIZE_MAX - 7};

static void new_batch(void) {
    unsigned char desc[21];
    world_conn(&w, &(const struct shape){.max_sge = OPERATION_MOST_SGES});
    MUST(rpma_batch_new(w.h.conn, MOST, &w.h.batch));
    world_descriptor(desc, WORLD_REMOTE_ADDR + 4, WORLD_REMOTE_SIZE, 78, WORLD_EVERY_USAGE);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &misaligned));
}

static void drop(void) {
    MUST(rpma_mr_remote_delete(&misaligned));
    world_drop(&w);
}

// The operation, for all that its kind does not use as well.
static struct operation operation(enum operation_kind kind) {
    static struct rpma_sge sgl[OPERATION_MOST_SGES];
    for (size_t i = 0; i < LENGTH(sgl); i++)
        sgl[i] = (struct rpma_sge){w.h.mr, 3 * i, i == 2 ? 0 : 5 + i};
    memcpy(bytes, "8 bytes", sizeof(bytes));
    return (struct operation){.kind = kind,
                              .local = w.h.mr,
                              .remote = w.h.remote,
                              .local_offset = 24,
                              .remote_offset = 16,
                              .len = 8,
                              .sgl = sgl,
                              .nsge = 4,
                              .value = bytes,
                              .type = RPMA_FLUSH_TYPE_PERSISTENT,
                              .flags = RPMA_F_COMPLETION_ALWAYS,
                              .imm = 0x12345678,
                              .op_context = (void *)0x1234567890};
}

// ---- what is posted ------------------------------------------------------------------------

static struct fake_post expected[MOST];
static unsigned added;

static void post_and_compare(void) {
    uint32_t posted = 0;
    MUST(rpma_batch_post(w.h.batch, &posted));
    assert_int_equal(posted, added);
    assert_int_equal(fake_posted_count(), added);
    for (unsigned i = 0; i < added; i++) {
        const struct fake_post got = operation_posted(i);
        assert_memory_equal(&got, &expected[i], sizeof(got));
    }
    MUST(rpma_batch_reset(w.h.batch));
    added = 0;
}

static void add(const struct operation *o) {
    expected[added] = operation_expected(o, w.h.conn);
    unit_begin();
    unit_must(operation_add(o, w.h.batch), operation_batch_name(o->kind), __FILE__, __LINE__);
    EXPECT_CALLS("");
    if (++added == MOST)
        post_and_compare();
}

// Whether the plain function takes it, which other tests hold against the contract.
static bool is_valid(const struct operation *o) {
    fake_forget();
    return operation_post(o, w.h.conn) == 0;
}

static void add_if_valid(const struct operation *o) {
    if (is_valid(o))
        add(o);
}

static void add_with_regions(struct operation o) {
    for (size_t i = 0; i < LENGTH(lengths); i++)
        for (size_t k = 0; k < LENGTH(offsets); k++) {
            // Inline data is read at once, so it has to be there.
            if (o.flags & RPMA_F_INLINE && offsets[k] >= WORLD_MEMORY_SIZE)
                continue;
            o.len = lengths[i];
            o.remote_offset = offsets[k];
            o.local_offset = offsets[k] + 1;
            add_if_valid(&o);
            o.type = RPMA_FLUSH_TYPE_VISIBILITY;
            add_if_valid(&o);
        }
    o.remote_offset = 16;
    o.remote = misaligned;
    add_if_valid(&o);
}

static void add_with_lists(struct operation o) {
    for (o.nsge = 0; o.nsge <= OPERATION_MOST_SGES; o.nsge++)
        add_if_valid(&o);
}

static void add_without_regions(struct operation o) {
    o.local = NULL;
    o.remote = NULL;
    o.sgl = NULL;
    o.nsge = 0;
    o.local_offset = o.remote_offset = o.len = 0;
    add_if_valid(&o);
}

static void batch_posts_what_plain_calls_post(void **state) {
    (void)state;
    unsigned before = 0;
    new_batch();
    for (int kind = 0; kind < OPERATION_KINDS; kind++)
        for (size_t i = 0; i < LENGTH(flags); i++) {
            struct operation o = operation((enum operation_kind)kind);
            o.flags = flags[i];
            add(&o);
            add_with_regions(o);
            add_with_lists(o);
            add_without_regions(o);
        }
    before = added;
    post_and_compare();
    assert_true(before > 0);
    drop();
}

// One of each, in one call of the provider, in both directions: a slot holds nothing of the
// operation that it held before.
static void kinds_follow_each_other_in_any_order(void **state) {
    (void)state;
    new_batch();
    for (int first = 0; first < OPERATION_KINDS; first++)
        for (int second = 0; second < OPERATION_KINDS; second++) {
            for (int i = 0; i < 2; i++) {
                struct operation o = operation((enum operation_kind)(i ? second : first));
                o.op_context = (void *)(uintptr_t)(2 * first + i);
                add(&o);
            }
            post_and_compare();
        }
    drop();
}

// ---- what is refused -----------------------------------------------------------------------

// Both refuse with the same code and the same words, and the batch keeps what it has.
static void expect_alike(const struct operation *o) {
    char message[1024];
    unit_begin();
    const int plain = operation_post(o, w.h.conn);
    assert_int_not_equal(plain, 0);
    snprintf(message, sizeof(message), "%s", logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message);
    unit_begin();
    assert_int_equal(operation_add(o, w.h.batch), plain);
    EXPECT_CALLS("");
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_ERROR), 1);
    assert_string_equal(logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message, message);
    assert_string_equal(logged_line(RPMA_LOG_LEVEL_ERROR, 0)->function,
                        operation_batch_name(o->kind));
}

static void expect_alike_if_refused(const struct operation *o) {
    if (!is_valid(o))
        expect_alike(o);
}

static void batch_refuses_what_plain_calls_refuse(void **state) {
    (void)state;
    new_batch();
    for (int kind = 0; kind < OPERATION_KINDS; kind++) {
        const struct operation good = operation((enum operation_kind)kind);
        struct rpma_sge bad[2] = {{w.h.mr, 0, 8}, {NULL, 0, 8}}, sum[2] = {{w.h.mr, 0, 8}};
        sum[1] = (struct rpma_sge){w.h.mr, 0, UINT32_MAX};
        const struct rpma_sge *const lists[] = {NULL, bad, sum};
        add(&good);
        for (int what = 0; what < 1 << 6; what++) {
            struct operation o = good;
            o.local = what & 1 ? NULL : o.local;
            o.remote = what & 2 ? NULL : o.remote;
            o.len = what & 4 ? (size_t)UINT32_MAX + 1 : o.len;
            o.flags = what & 8 ? 0 : o.flags;
            o.remote_offset = what & 16 ? 3 + WORLD_REMOTE_SIZE : o.remote_offset;
            o.type = what & 32 ? (enum rpma_flush_type)7 : o.type;
            expect_alike_if_refused(&o);
            o.nsge = 2;
            for (size_t i = 0; i < LENGTH(lists); i++) {
                o.sgl = lists[i];
                expect_alike_if_refused(&o);
            }
            o.nsge = OPERATION_MOST_SGES + 1;
            expect_alike_if_refused(&o);
            o.nsge = -1;
            expect_alike_if_refused(&o);
        }
    }
    post_and_compare();
    drop();
}

// ---- flushes and atomic writes -------------------------------------------------------------

static void flush_needs(bool native) {
    unsigned char desc[21];
    struct rpma_mr_remote *unused = NULL;
    fake_device()->native_flush = native;
    new_batch();
    world_descriptor(desc, WORLD_REMOTE_ADDR, 64, 1, RPMA_MR_USAGE_WRITE_DST);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &unused));
    for (int round = 0; round < 2; round++) {
        EXPECT_ERROR(
            rpma_batch_flush(w.h.batch, unused, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, 1, NULL),
            RPMA_E_NOSUPP, "type is not in the usage", "not registered with");
        // The first flush of a connection goes another way than those behind it.
        MUST(rpma_flush(w.h.conn, w.h.remote, 0, 8, RPMA_FLUSH_TYPE_VISIBILITY, 1, NULL));
        fake_forget();
    }
    MUST(rpma_mr_remote_delete(&unused));
    MUST(rpma_peer_cfg_set_direct_write_to_pmem(w.h.pcfg, false));
    MUST(rpma_conn_apply_remote_peer_cfg(w.h.conn, w.h.pcfg));
    EXPECT_ERROR(
        rpma_batch_flush(w.h.batch, w.h.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, 1, NULL),
        RPMA_E_NOSUPP, "direct write to PMem not enabled", "direct write to PMem");
    post_and_compare(); // nothing
    drop();
}

static void flush_needs_what_the_plain_one_needs(void **state) {
    (void)state;
    flush_needs(false);
    flush_needs(true); // on a device that flushes by itself
}

// One warning of a connection, whether its batches or plain calls misalign.
static void misaligned_atomic_write_warns_once(void **state) {
    (void)state;
    struct operation o;
    new_batch();
    o = operation(OPERATION_ATOMIC_WRITE);
    unit_begin();
    assert_int_equal(operation_add(&o, w.h.batch), 0);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
    o.remote = misaligned;
    assert_int_equal(operation_add(&o, w.h.batch), 0);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 1);
    assert_string_equal(logged_line(RPMA_LOG_LEVEL_WARNING, 0)->function,
                        "rpma_batch_atomic_write");
    logged_forget();
    assert_int_equal(operation_add(&o, w.h.batch), 0);
    assert_int_equal(operation_post(&o, w.h.conn), 0);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
    drop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(batch_posts_what_plain_calls_post),     TEST(kinds_follow_each_other_in_any_order),
        TEST(batch_refuses_what_plain_calls_refuse), TEST(flush_needs_what_the_plain_one_needs),
        TEST(misaligned_atomic_write_warns_once),
    };
    return UNIT_RUN("batch_kinds", tests);
}
