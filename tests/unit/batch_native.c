// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch_native.c -- batches for devices that flush and write atomically by themselves: where
// the build knows these operations, an extended queue pair gets the list; where it does not,
// the list is like any other. Each test expects one or the other.

#include "operation.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = OPERATION_KINDS + 1 };

static struct world w;
static char bytes[8] = "8 bytes";

static void new_batch(bool flush, bool atomic_write) {
    fake_device()->native_flush = flush;
    fake_device()->native_atomic_write = atomic_write;
    world_conn(&w, &(const struct shape){.max_sge = OPERATION_MOST_SGES});
    MUST(rpma_batch_new(w.h.conn, MOST, &w.h.batch));
}

static unsigned elements = 3; // of a list

static struct operation operation(enum operation_kind kind, int flags) {
    static struct rpma_sge sgl[3];
    for (size_t i = 0; i < LENGTH(sgl); i++)
        sgl[i] = (struct rpma_sge){w.h.mr, 100 * i, 5 + i};
    return (struct operation){.kind = kind,
                              .local = w.h.mr,
                              .remote = w.h.remote,
                              .local_offset = 24,
                              .remote_offset = 16,
                              .len = 8,
                              .sgl = sgl,
                              .nsge = (int)elements,
                              .value = bytes,
                              .type = RPMA_FLUSH_TYPE_PERSISTENT,
                              .flags = flags,
                              .imm = 0x12345678,
                              .op_context = (void *)(0x100 + (uintptr_t)kind)};
}

static bool is_native(bool flush, bool atomic_write) {
    return (flush && BUILD_FLUSHES) || (atomic_write && BUILD_WRITES_ATOMICALLY);
}

static struct fake_post expected[MOST];
static unsigned added;

// Every kind once; the region of the last one makes the atomic write an ordinary one.
static void add_every_kind(int flags) {
    added = 0;
    for (int kind = 0; kind < OPERATION_KINDS; kind++) {
        const struct operation o = operation((enum operation_kind)kind, flags);
        expected[added++] = operation_expected(&o, w.h.conn);
        unit_begin();
        assert_int_equal(operation_add(&o, w.h.batch), 0);
        EXPECT_CALLS("");
    }
}

static void expect_all_posted(void) {
    assert_int_equal(fake_posted_count(), added);
    for (unsigned i = 0; i < added; i++) {
        const struct fake_post got = operation_posted(i);
        assert_memory_equal(&got, &expected[i], sizeof(got));
    }
}

// ---- lists of every kind -------------------------------------------------------------------

// The runs of operations that have several elements, or of the others.
static unsigned runs(bool of_lists) {
    unsigned count = 0;
    for (unsigned i = 0; i < added; i++) {
        const bool is_list = expected[i].num_sge > 1;
        const bool was_list = i > 0 && expected[i - 1].num_sge > 1;
        count += is_list == of_lists && (i == 0 || was_list != is_list);
    }
    return count;
}

// wr_set_sge_list() of rxe gets the length of several elements wrong: they go by
// ibv_post_send().
static void elements_interrupt_a_native_list(void **state) {
    (void)state;
    for (elements = 2; elements <= 3; elements++)
        for (int keeps_bad_wr = 0; keeps_bad_wr < 2; keeps_bad_wr++) {
            fake_reset();
            new_batch(true, true);
            fake_device()->keeps_bad_wr = keeps_bad_wr;
            const bool native = is_native(true, true);
            add_every_kind(RPMA_F_COMPLETION_ALWAYS);
            for (int again = 0; again < 2; again++) {
                uint32_t posted = 0;
                MUST(rpma_batch_post(w.h.batch, &posted));
                assert_int_equal(posted, added);
                assert_int_equal(fake_count("ibv_post_send"), native ? runs(true) : 1);
                assert_int_equal(fake_count("ibv_wr_start"), native ? runs(false) : 0);
                assert_int_equal(fake_count("ibv_wr_complete"), native ? runs(false) : 0);
                expect_all_posted();
            }
            world_drop(&w);
        }
    elements = 3;
}

static void list_is_handed_over_at_once(void **state) {
    (void)state;
    elements = 1;
    for (int device = 0; device < 4; device++)
        for (int flags = 1; flags <= RPMA_F_COMPLETION_ALWAYS; flags += 2) {
            fake_reset();
            const bool flush = device & 1, atomic_write = device & 2;
            const bool native = is_native(flush, atomic_write);
            new_batch(flush, atomic_write);
            add_every_kind(flags);
            for (int again = 0; again < 2; again++) {
                uint32_t posted = 0;
                MUST(rpma_batch_post(w.h.batch, &posted));
                assert_int_equal(posted, added);
                assert_int_equal(fake_count("ibv_post_send"), !native);
                assert_int_equal(fake_count("ibv_wr_start"), native);
                assert_int_equal(fake_count("ibv_wr_complete"), native);
                expect_all_posted();
            }
            world_drop(&w);
        }
    elements = 3;
}

// An atomic write to a misaligned region is an ordinary one, whose bytes go with the request.
static void misaligned_atomic_write_goes_with_a_flush(void **state) {
    (void)state;
    unsigned char desc[21];
    new_batch(true, true);
    MUST(rpma_mr_remote_delete(&w.h.remote));
    world_descriptor(desc, WORLD_REMOTE_ADDR + 1, 64, 1, WORLD_EVERY_USAGE);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w.h.remote));
    add_every_kind(RPMA_F_COMPLETION_ALWAYS);
    memset(bytes, 'x', sizeof(bytes));
    MUST(rpma_batch_post(w.h.batch, NULL));
    memcpy(bytes, "8 bytes", sizeof(bytes));
    expect_all_posted();
    assert_int_equal(fake_posted(OPERATION_ATOMIC_WRITE)->flags,
                     IBV_SEND_FENCE | IBV_SEND_INLINE | IBV_SEND_SIGNALED);
    assert_memory_equal(fake_posted(OPERATION_ATOMIC_WRITE)->inlined, "8 bytes", 8);
    world_drop(&w);
}

// ---- refusals ------------------------------------------------------------------------------

// A native list is refused as a whole, wherever the refusal comes from.
static void refused_native_list_is_posted_again(void **state) {
    (void)state;
    elements = 1;
    for (unsigned nth = 0; nth < OPERATION_KINDS; nth++) {
        uint32_t posted = 77;
        fake_reset();
        new_batch(true, true);
        const bool native = is_native(true, true);
        add_every_kind(RPMA_F_COMPLETION_ALWAYS);
        if (nth > 0)
            fake_fail("send request", nth, ENOMEM);
        else
            fake_fail(native ? "ibv_wr_complete" : "ibv_post_send", 1, ENOMEM);
        char place[64];
        snprintf(place, sizeof(place),
                 native ? "operations 1 to %u of %u: " : "operation %u of %u: ",
                 native ? OPERATION_KINDS : nth + 1, OPERATION_KINDS);
        EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_PROVIDER,
                     "ibv_post_send() failed", native ? "ibv_wr_complete()" : "ibv_post_send()",
                     ENOMEM, .any_calls = true, .before = place);
        assert_int_equal(posted, native ? 0 : nth);
        fake_faults_off();
        const uint32_t taken = posted;
        MUST(rpma_batch_post(w.h.batch, &posted));
        assert_int_equal(posted, OPERATION_KINDS - taken);
        MUST(rpma_batch_post(w.h.batch, &posted));
        assert_int_equal(posted, OPERATION_KINDS);
        expect_all_posted();
        world_drop(&w);
    }
    elements = 3;
}

// Whether the nth fault makes a post fail; then *posted tells what is in the queue, and the
// next post goes on with what is left, or begins anew if nothing is.
static bool goes_on_after(const char *fault, unsigned nth, int error) {
    uint32_t posted = 77;
    fake_reset();
    new_batch(true, true);
    add_every_kind(RPMA_F_COMPLETION_ALWAYS);
    fake_fail(fault, nth, error);
    const int ret = rpma_batch_post(w.h.batch, &posted);
    const uint32_t next = posted % OPERATION_KINDS;
    fake_faults_off();
    if (ret != 0) {
        assert_int_equal(ret, RPMA_E_PROVIDER);
        assert_int_equal(fake_posted_count(), posted);
        unit_begin();
        MUST(rpma_batch_post(w.h.batch, &posted));
        assert_int_equal(posted, OPERATION_KINDS - next);
        assert_int_equal(fake_posted_count(), posted);
        const struct fake_post got = operation_posted(0);
        assert_memory_equal(&got, &expected[next], sizeof(got));
        MUST(rpma_batch_post(w.h.batch, &posted));
        expect_all_posted();
    }
    world_drop(&w);
    return ret != 0;
}

// Whichever call, operation or doorbell fails, nothing is posted twice, and nothing is lost; of
// lists that several elements interrupt, and of those that go in one call.
static void nothing_is_posted_twice(void **state) {
    (void)state;
    const bool native = is_native(true, true);
    for (int of_lists = 0; of_lists < 2; of_lists++) {
        elements = of_lists ? 3 : 1;
        struct {
            const char *fault;
            int error;
            unsigned places; // where it makes a post fail
        } faults[] = {{"ibv_wr_complete", ENOMEM, 0},
                      {"ibv_post_send", ENOMEM, 0},
                      {"send request", ENOMEM, 0},
                      {"doorbell", EIO, 0},
                      {"doorbell", -1, 0}};
        for (size_t i = 0; i < LENGTH(faults); i++)
            while (goes_on_after(faults[i].fault, faults[i].places + 1, faults[i].error))
                faults[i].places++;
        const unsigned lists = native ? runs(true) : 1, others = native ? runs(false) : 0;
        assert_int_equal(faults[0].places, others);
        assert_int_equal(faults[1].places, lists);
        assert_int_equal(faults[2].places, OPERATION_KINDS - lists - others);
        assert_int_equal(faults[3].places, lists + others);
        assert_int_equal(faults[4].places, lists + others);
    }
}

#if defined(TEST_NATIVE_FLUSH) && defined(TEST_NATIVE_ATOMIC_WRITE)
// Of what the provider was given, whatever it leaves behind.
static void line_names_what_failed(void **state) {
    (void)state;
    enum { WRITE = OPERATION_WRITE, LIST = OPERATION_WRITEV };
    enum { FLUSH = OPERATION_FLUSH, ATOMIC = OPERATION_ATOMIC_WRITE };
    static const struct {
        enum operation_kind list[3];
        const char *fault; // the nth
        unsigned nth;
        int error;
        const char *before, *logs; // with a native operation in the list
        bool is_posted;            // by ibv_post_send() then
    } cases[] = {
        {{LIST, WRITE, FLUSH},
         "ibv_post_send",
         1,
         ENOMEM,
         "operation 1 of 3: ",
         "(opcode=IBV_WR_RDMA_WRITE, ",
         true},
        {{LIST, WRITE, FLUSH},
         "doorbell",
         1,
         EIO,
         "operation 1 of 3 (queued): ",
         "(opcode=IBV_WR_RDMA_WRITE, ",
         true},
        {{LIST, LIST, FLUSH},
         "doorbell",
         1,
         EIO,
         "operation 1 of 3 (queued): ",
         ", wr_id=0x101,",
         true},
        {{LIST, LIST, FLUSH},
         "doorbell",
         2,
         EIO,
         "operation 2 of 3 (queued): ",
         ", wr_id=0x102,",
         true},
        {{FLUSH, WRITE, LIST},
         "doorbell",
         2,
         EIO,
         "operation 3 of 3 (queued): ",
         ", wr_id=0x103,",
         true},
        {{LIST, LIST, FLUSH},
         "ibv_wr_complete",
         1,
         ENOSPC,
         "operation 3 of 3: ",
         "(first: opcode=IBV_WR_FLUSH, wr_id=0x103)",
         false},
        {{FLUSH, WRITE, LIST},
         "ibv_wr_complete",
         1,
         ENOSPC,
         "operations 1 to 2 of 3: ",
         "(first: opcode=IBV_WR_FLUSH, wr_id=0x101)",
         false},
        {{LIST, WRITE, FLUSH},
         "doorbell",
         2,
         EIO,
         "operations 2 to 3 of 3 (may be queued): ",
         "(first: opcode=IBV_WR_RDMA_WRITE, wr_id=0x102)",
         false},
        {{ATOMIC, LIST, FLUSH},
         "doorbell",
         1,
         EIO,
         "operation 1 of 3 (may be queued): ",
         "(first: opcode=IBV_WR_ATOMIC_WRITE, wr_id=0x101)",
         false},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        fake_reset();
        new_batch(true, true);
        for (uintptr_t n = 0; n < 3; n++) {
            struct operation o = operation(cases[i].list[n], RPMA_F_COMPLETION_ALWAYS);
            o.op_context = (void *)(0x101 + n);
            assert_int_equal(operation_add(&o, w.h.batch), 0);
        }
        fake_fail(cases[i].fault, cases[i].nth, cases[i].error);
        EXPECT_ERROR(
            rpma_batch_post(w.h.batch, NULL), RPMA_E_PROVIDER, "ibv_post_send() failed",
            cases[i].is_posted ? "ibv_post_send()" : "ibv_wr_complete()", cases[i].error,
            .any_calls = true, .before = cases[i].before, .logs = cases[i].logs);
        world_drop(&w);
    }
}
#endif

int main(void) {
    unsetenv("RPMA_FLUSH");
    const struct CMUnitTest tests[] = {
        TEST(list_is_handed_over_at_once),
        TEST(elements_interrupt_a_native_list),
        TEST(misaligned_atomic_write_goes_with_a_flush),
        TEST(refused_native_list_is_posted_again),
        TEST(nothing_is_posted_twice),
#if defined(TEST_NATIVE_FLUSH) && defined(TEST_NATIVE_ATOMIC_WRITE)
        TEST(line_names_what_failed),
#endif
    };
    return UNIT_RUN("batch_native", tests);
}
