// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// work.c -- operations of every kind, posted in every way: each equals, byte by byte, the
// request that the plain function hands to the device

#include "operation.h"

#include <stdio.h>

static struct rpma_mr_remote *misaligned;

static const size_t lengths[] = {0, 1, 8, WORLD_MEMORY_SIZE, UINT32_MAX};
static const size_t offsets[] = {0, 8, WORLD_REMOTE_SIZE - 8, WORLD_REMOTE_SIZE - 3,
                                 SIZE_MAX - 7};

static void begin(bool native) {
    unsigned char desc[21];
    fake_device()->native_flush = fake_device()->native_atomic_write = native;
    world_conn(&w, &(const struct shape){.max_sge = OPERATION_MOST_SGES});
    MUST(rpma_batch_new(w.h.conn, 3, &w.h.batch));
    world_descriptor(desc, WORLD_REMOTE_ADDR + 4, WORLD_REMOTE_SIZE, 78, WORLD_EVERY_USAGE);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &misaligned));
}

static void end(void) {
    MUST(rpma_mr_remote_delete(&misaligned));
    world_drop(&w);
}

static bool carries(enum rpma_work_type kind) {
    return kind != RPMA_WORK_READ && kind != RPMA_WORK_ATOMIC_WRITE && kind != RPMA_WORK_FLUSH;
}

static bool has_local(enum rpma_work_type kind) {
    return kind == RPMA_WORK_READ || carries(kind);
}

static void expect_posted(const struct rpma_work *o) {
    const struct fake_post expected = operation_expected(o, &w);
    for (enum operation_way way = 0; way < OPERATION_WAYS; way++) {
        char what[64];
        snprintf(what, sizeof(what), "kind %d by %s", (int)o->type,
                 operation_names[way].function);
        MUST_OF(what, operation_by(way, o, &w));
        const struct fake_post got = operation_got(way);
        operation_compare(&got, &expected, what);
    }
}

// What the plain function refuses, every way refuses with its code; work_refused.c has more.
static void expect_alike(const struct rpma_work *o) {
    fake_forget();
    const int plain = operation_plain(o, w.h.conn);
    if (plain == 0) {
        expect_posted(o);
        return;
    }
    for (enum operation_way way = 0; way < OPERATION_WAYS; way++)
        assert_int_equal(operation_by(way, o, &w), plain);
}

// ---- one piece -----------------------------------------------------------------------------

static void try_ranges(struct rpma_work o) {
    for (size_t i = 0; i < LENGTH(lengths); i++)
        for (size_t k = 0; k < LENGTH(offsets); k++) {
            // Inline data is read at once, so its memory has to exist.
            if (o.flags & RPMA_F_INLINE && (lengths[i] > 8 || offsets[k] >= WORLD_MEMORY_SIZE))
                continue;
            o.flush_len = lengths[i];
            o.remote_offset = offsets[k];
            if (has_local(o.type))
                o.local = (struct rpma_sge){w.h.mr, offsets[k] + 1, lengths[i]};
            expect_alike(&o);
            if (o.type == RPMA_WORK_FLUSH) {
                o.flush_type = !o.flush_type;
                expect_alike(&o);
            }
        }
}

TEST_THAT(ranges_are_those_of_plain_functions) {
    static const int flags[] = {RPMA_F_COMPLETION_ON_ERROR, RPMA_F_COMPLETION_ALWAYS,
                                RPMA_F_COMPLETION_ON_ERROR | RPMA_F_INLINE,
                                RPMA_F_COMPLETION_ALWAYS | RPMA_F_INLINE};
    for (int native = 0; native < 2; native++) {
        fake_reset();
        begin(native);
        fake_device()->any_range = true;
        for
            OPERATION_EACH_KIND(kind)
        for (size_t i = 0; i < LENGTH(flags); i++) {
            struct rpma_work o = operation_of(&w, kind);
            o.flags = flags[i];
            if (flags[i] & RPMA_F_INLINE && !carries(kind))
                continue;
            try_ranges(o);
            if (o.remote) {
                o.remote = misaligned;
                expect_posted(&o);
            }
        }
        end();
    }
}

TEST_THAT(empty_operations_touch_nothing) {
    begin(false);
    for
        OPERATION_EACH_KIND(kind)
    for (int is_inline = 0; has_local(kind) && is_inline <= carries(kind); is_inline++) {
        struct rpma_work o = operation_of(&w, kind);
        o.remote = NULL;
        o.remote_offset = 0;
        o.local = (struct rpma_sge){NULL, 0, 0};
        o.flags |= is_inline ? RPMA_F_INLINE : 0;
        expect_posted(&o);
        assert_int_equal(operation_got(OPERATION_SET).inlined_bytes, 0);
    }
    end();
}

// ---- several pieces ------------------------------------------------------------------------

TEST_THAT(pieces_are_one_operation) {
    begin(false);
    for
        OPERATION_EACH_KIND(kind)
    for (uint32_t number = 1; has_local(kind) && number <= OPERATION_MOST_SGES; number++)
        for (int is_inline = 0; is_inline <= (carries(kind) && number == 1); is_inline++) {
            struct rpma_work o = operation_of_pieces(&w, kind, number);
            o.flags |= is_inline ? RPMA_F_INLINE : 0;
            expect_posted(&o);
        }
    end();
}

// With a remote region, such an operation is a transfer of 0 bytes.
TEST_THAT(pieces_may_all_be_empty) {
    struct rpma_sge sgl[2] = {{NULL, 0, 0}};
    begin(false);
    sgl[1] = (struct rpma_sge){w.h.mr, SIZE_MAX, 0};
    for
        OPERATION_EACH_KIND(kind)
    for (uint32_t number = 1; has_local(kind) && number <= 2; number++)
        for (int is_inline = 0; is_inline <= carries(kind); is_inline++) {
            struct rpma_work o = operation_of_pieces(&w, kind, number);
            o.sgl = sgl;
            o.flags |= is_inline ? RPMA_F_INLINE : 0;
            expect_posted(&o);
            assert_int_equal(operation_got(OPERATION_SET).num_sge, 0);
            assert_int_equal(operation_got(OPERATION_SET).inlined_bytes, 0);
        }
    end();
}

// ---- flushes and atomic writes -------------------------------------------------------------

static void expect_unsupported(const struct rpma_work *o, const char *condition,
                               const char *logs) {
    for (enum operation_way way = 0; way < OPERATION_WAYS; way++) {
        EXPECT_ERROR_OF(operation_names[way].function, operation_by(way, o, &w), RPMA_E_NOSUPP,
                        condition, condition, .before = operation_names[way].element,
                        .logs = logs, .any_calls = true);
        assert_int_equal(fake_posted_count(), way == OPERATION_ARRAY);
    }
}

TEST_THAT(flushes_need_what_the_plain_one_needs) {
    for (int native = 0; native < 2; native++) {
        unsigned char desc[21];
        struct rpma_mr_remote *unused = NULL;
        fake_reset();
        begin(native);
        world_descriptor(desc, WORLD_REMOTE_ADDR, 64, 1, RPMA_MR_USAGE_WRITE_DST);
        MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &unused));
        struct rpma_work o = operation_of(&w, RPMA_WORK_FLUSH);
        MUST(operation_plain(&o, w.h.conn)); // logs the notice about the mode
        o.remote = unused;
        expect_unsupported(&o, "flush_type is not in the usage", "not registered with");
        o.remote = w.h.remote;
        MUST(rpma_peer_cfg_set_direct_write_to_pmem(w.h.pcfg, false));
        MUST(rpma_conn_apply_remote_peer_cfg(w.h.conn, w.h.pcfg));
        expect_unsupported(&o, "direct write to PMem not enabled", "direct write to PMem");
        MUST(rpma_mr_remote_delete(&unused));
        end();
    }
}

// A connection warns once, whichever way posts the first misaligned write.
TEST_THAT(misaligned_atomic_writes_warn_once) {
    for (enum operation_way first = 0; first < OPERATION_WAYS; first++) {
        fake_reset();
        begin(false);
        struct rpma_work o = operation_of(&w, RPMA_WORK_ATOMIC_WRITE);
        MUST(operation_by(first, &o, &w));
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
        o.remote = misaligned;
        MUST(operation_by(first, &o, &w));
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 1);
        assert_string_equal(logged_line(RPMA_LOG_LEVEL_WARNING, 0)->function,
                            operation_names[first].function);
        logged_forget();
        for (enum operation_way way = 0; way < OPERATION_WAYS; way++)
            assert_int_equal(operation_by(way, &o, &w), 0);
        assert_int_equal(operation_plain(&o, w.h.conn), 0);
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
        end();
    }
}
