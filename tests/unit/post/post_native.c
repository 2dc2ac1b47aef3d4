// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// post_native.c -- arrays and batches on devices with native flush and atomic write: where the
// build knows these operations, an extended queue pair gets the list; where it does not, the
// list is like any other. Each test expects one or the other.

#include "operation.h"

#include <stdio.h>
#include <stdlib.h>

// Every kind; those with local memory also with a list of pieces.
static const struct {
    enum rpma_work_type kind;
    bool has_list;
} operations[] = {
    {RPMA_WORK_READ, false},           {RPMA_WORK_READ, true},
    {RPMA_WORK_WRITE, false},          {RPMA_WORK_WRITE, true},
    {RPMA_WORK_WRITE_WITH_IMM, false}, {RPMA_WORK_WRITE_WITH_IMM, true},
    {RPMA_WORK_ATOMIC_WRITE, false},   {RPMA_WORK_FLUSH, false},
    {RPMA_WORK_SEND, false},           {RPMA_WORK_SEND, true},
    {RPMA_WORK_SEND_WITH_IMM, false},  {RPMA_WORK_SEND_WITH_IMM, true},
};
enum { OPERATIONS = LENGTH(operations), ATOMIC_WRITE = 6 };

static unsigned elements = 3; // of a list

// Whether tests post an array by rpma_post(), from the first operation that was not taken, or a
// batch, which knows that operation by itself.
static bool by_array;
static struct rpma_work work[OPERATIONS];
static struct fake_post expected[OPERATIONS];
static unsigned taken;

static void new_batch(bool flush, bool atomic_write) {
    world_anew();
    fake_device()->native_flush = flush;
    fake_device()->native_atomic_write = atomic_write;
    world_conn(&w, &(const struct shape){.max_sge = OPERATION_MOST_SGES});
    MUST(rpma_batch_new(w.h.conn, OPERATIONS, &w.h.batch));
    taken = 0;
}

static bool is_native(bool flush, bool atomic_write) {
    return (flush && BUILD_FLUSHES) || (atomic_write && BUILD_WRITES_ATOMICALLY);
}

static void add_every_kind(int flags) {
    for (size_t i = 0; i < OPERATIONS; i++) {
        work[i] = operations[i].has_list ? operation_of_pieces(&w, operations[i].kind, elements)
                                         : operation_of(&w, operations[i].kind);
        work[i].flags = flags;
        work[i].op_context = (void *)(0x100 + i);
        expected[i] = operation_expected(&work[i], &w);
        unit_begin();
        assert_int_equal(rpma_batch_add(w.h.batch, &work[i]), 0);
        EXPECT_CALLS("");
    }
}

static int post(uint32_t *posted) {
    const int ret = by_array ? rpma_post(w.h.conn, work + taken, OPERATIONS - taken, posted)
                             : rpma_batch_post(w.h.batch, posted);
    taken = (taken + *posted) % OPERATIONS;
    return ret;
}

static void expect_posted(unsigned from, unsigned count) {
    assert_int_equal(fake_posted_count(), count);
    for (unsigned i = 0; i < count; i++) {
        const struct fake_post got = operation_posted(i);
        operation_compare(&got, &expected[from + i], "of a list");
    }
}

// Posts all operations twice, each time by this many provider calls.
static void expect_all_posted_twice(unsigned lists, unsigned runs) {
    for (int again = 0; again < 2; again++) {
        uint32_t posted = 0;
        MUST(post(&posted));
        assert_int_equal(posted, OPERATIONS);
        assert_int_equal(fake_count("ibv_post_send"), lists);
        assert_int_equal(fake_count("ibv_wr_start"), runs);
        assert_int_equal(fake_count("ibv_wr_complete"), runs);
        expect_posted(0, OPERATIONS);
    }
}

// ---- lists of every kind -------------------------------------------------------------------

// Counts the operations of several elements, or the runs of other operations between them.
static unsigned runs(bool of_lists) {
    unsigned count = 0;
    for (unsigned i = 0; i < OPERATIONS; i++) {
        const bool is_list = operations[i].has_list;
        const bool was_list = i > 0 && operations[i - 1].has_list;
        count += is_list == of_lists && (of_lists || i == 0 || was_list);
    }
    return count;
}

// wr_set_sge_list() of rxe gets the length of several elements wrong, so these operations go by
// ibv_post_send().
TEST_THAT(elements_interrupt_a_native_list) {
    const bool native = is_native(true, true);
    for (int i = 0; i < 8; i++) {
        elements = 2 + i / 2 % 2;
        by_array = i / 4;
        new_batch(true, true);
        fake_device()->keeps_bad_wr = i % 2;
        add_every_kind(RPMA_F_COMPLETION_ALWAYS);
        expect_all_posted_twice(native ? runs(true) : 1, native ? runs(false) : 0);
    }
    elements = 3;
}

TEST_THAT(list_is_handed_over_at_once) {
    elements = 1;
    for (int i = 0; i < 16; i++) {
        const bool flush = i & 1, atomic_write = i & 2;
        const bool native = is_native(flush, atomic_write);
        by_array = i & 4;
        new_batch(flush, atomic_write);
        add_every_kind(i & 8 ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR);
        expect_all_posted_twice(!native, native);
    }
    elements = 3;
}

// A misaligned atomic write becomes an ordinary one, whose bytes go with the request.
TEST_THAT(misaligned_atomic_write_goes_with_a_flush) {
    unsigned char desc[21];
    new_batch(true, true);
    MUST(rpma_mr_remote_delete(&w.h.remote));
    world_descriptor(desc, WORLD_REMOTE_ADDR + 1, 64, 1, WORLD_EVERY_USAGE);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w.h.remote));
    add_every_kind(RPMA_F_COMPLETION_ALWAYS);
    memset(work, 'x', sizeof(work)); // the bytes were copied
    MUST(rpma_batch_post(w.h.batch, NULL));
    expect_posted(0, OPERATIONS);
    assert_int_equal(fake_posted(ATOMIC_WRITE)->flags,
                     IBV_SEND_FENCE | IBV_SEND_INLINE | IBV_SEND_SIGNALED);
    assert_memory_equal(fake_posted(ATOMIC_WRITE)->inlined, "8 bytes", 8);
}

// ---- refusals ------------------------------------------------------------------------------

// Whether the nth fault makes a post fail. Then *posted is the number of queued operations, and
// the next post goes on with the rest, or begins anew if there is none.
static bool goes_on_after(const char *fault, unsigned nth, int error) {
    uint32_t posted = 77;
    new_batch(true, true);
    add_every_kind(RPMA_F_COMPLETION_ALWAYS);
    fake_fail(fault, nth, error);
    fake_forget();
    const int ret = post(&posted);
    fake_faults_off();
    if (ret != 0) {
        const bool is_full = error == ENOMEM || error == ENOSPC;
        assert_int_equal(ret, is_full ? RPMA_E_AGAIN : RPMA_E_PROVIDER);
        assert_int_equal(fake_posted_count(), posted);
        const unsigned next = taken;
        MUST(post(&posted));
        assert_int_equal(posted, OPERATIONS - next);
        expect_posted(next, OPERATIONS - next);
        MUST(post(&posted));
        expect_posted(0, OPERATIONS);
    }
    world_drop(&w);
    return ret != 0;
}

// Whichever call, operation or doorbell fails, nothing is posted twice and nothing is lost,
// both in lists that operations of several elements cut and in lists that one call posts. A
// native list is refused as a whole.
TEST_THAT(nothing_is_posted_twice) {
    const bool native = is_native(true, true);
    for (int i = 0; i < 4; i++) {
        elements = i % 2 ? 3 : 1;
        by_array = i / 2;
        struct {
            const char *fault;
            int error;
            unsigned places; // number of calls whose failure makes a post fail
        } faults[] = {{"ibv_wr_complete", ENOMEM, 0},
                      {"ibv_post_send", ENOMEM, 0},
                      {"send request", ENOMEM, 0},
                      {"doorbell", EIO, 0},
                      {"doorbell", -1, 0},
                      {"ibv_wr_complete", ENOSPC, 0}};
        for (size_t f = 0; f < LENGTH(faults); f++)
            while (goes_on_after(faults[f].fault, faults[f].places + 1, faults[f].error))
                faults[f].places++;
        const bool is_cut = native && elements > 1;
        const unsigned lists = is_cut ? runs(true) : !native,
                       others = is_cut ? runs(false) : native;
        assert_int_equal(faults[0].places, others);
        assert_int_equal(faults[1].places, lists);
        assert_int_equal(faults[2].places, OPERATIONS - lists - others);
        assert_int_equal(faults[3].places, lists + others);
        assert_int_equal(faults[4].places, lists + others);
        assert_int_equal(faults[5].places, others);
    }
    elements = 3;
}

#if defined(TEST_NATIVE_FLUSH) && defined(TEST_NATIVE_ATOMIC_WRITE)
// The line names the operations that the call got, whatever bad_wr says. Each letter of a list
// is an operation: a List, a Write, a Flush, an Atomic write.
TEST_THAT(line_names_what_failed) {
    static const struct {
        const char *list;
        const char *fault; // its nth call fails
        unsigned nth;
        int error;
        const char *places[2]; // first and last failed operation, and what is known of them
        const char *logs;      // of ibv_wr_complete() if it has "first"
    } cases[] = {
    // clang-format off
#define WRITE_CALL "(opcode=IBV_WR_RDMA_WRITE, "
#define FIRST_FLUSH "(first: opcode=IBV_WR_FLUSH, remote_addr=0x10010, length=8, wr_id=0x10"
        {"LWF", "ibv_post_send", 1, EINVAL, {"[0]", ": "}, WRITE_CALL},
        {"LWF", "doorbell", 1, EIO, {"[0]", " (queued): "}, WRITE_CALL},
        {"LLF", "doorbell", 1, EIO, {"[0]", " (queued): "}, ", wr_id=0x100,"},
        {"LLF", "doorbell", 2, EIO, {"[1]", " (queued): "}, ", wr_id=0x101,"},
        {"FWL", "doorbell", 2, EIO, {"[2]", " (queued): "}, ", wr_id=0x102,"},
        {"LLF", "ibv_wr_complete", 1, EINVAL, {"[2]", " (may be queued): "}, FIRST_FLUSH "2)"},
        {"FWL", "doorbell", 1, EIO, {"[0] to ", "[1] (may be queued): "}, FIRST_FLUSH "0)"},
        {"LWF", "doorbell", 2, EIO, {"[1] to ", "[2] (may be queued): "},
         "(first: opcode=IBV_WR_RDMA_WRITE, remote_addr=0x10010, length=8, wr_id=0x101)"},
        {"ALF", "doorbell", 1, EIO, {"[0]", " (may be queued): "},
         "(first: opcode=IBV_WR_ATOMIC_WRITE, remote_addr=0x10010, length=8, wr_id=0x100)"},
        {"LLF", "ibv_wr_complete", 1, ENOSPC, {"[2]", ": "}, FIRST_FLUSH "2)"},
        {"FWL", "ibv_wr_complete", 1, ENOMEM, {"[0] to ", "[1]: "}, FIRST_FLUSH "0)"},
        // clang-format on
    };
    for (size_t i = 0; i < 2 * LENGTH(cases); i++) {
        const char *const array = i % 2 ? "work" : "batch";
        const size_t c = i / 2;
        const bool is_again = cases[c].error == ENOSPC || cases[c].error == ENOMEM;
        const bool is_range = strstr(cases[c].places[0], " to ") != NULL;
        char before[64];
        new_batch(true, true);
        for (uintptr_t n = 0; n < 3; n++) {
            const char kind = cases[c].list[n];
            work[n] = kind == 'L'   ? operation_of_pieces(&w, RPMA_WORK_WRITE, 2)
                      : kind == 'W' ? operation_of(&w, RPMA_WORK_WRITE)
                      : kind == 'F' ? operation_of(&w, RPMA_WORK_FLUSH)
                                    : operation_of(&w, RPMA_WORK_ATOMIC_WRITE);
            work[n].op_context = (void *)(0x100 + n);
            assert_int_equal(rpma_batch_add(w.h.batch, &work[n]), 0);
        }
        snprintf(before, sizeof(before), "%s%s%s%s", array, cases[c].places[0],
                 is_range ? array : "", cases[c].places[1]);
        fake_fail(cases[c].fault, cases[c].nth, cases[c].error);
        unit_begin();
        const int ret =
            i % 2 ? rpma_post(w.h.conn, work, 3, NULL) : rpma_batch_post(w.h.batch, NULL);
        struct expected_error e = {
            .code = is_again ? RPMA_E_AGAIN : RPMA_E_PROVIDER,
            .condition = is_again ? "the send queue is full" : "ibv_post_send() failed",
            .cause = strstr(cases[c].logs, "first") ? "ibv_wr_complete()" : "ibv_post_send()",
            .error = is_again ? 0 : cases[c].error,
            .any_calls = true,
            .before = before,
            .logs = cases[c].logs};
        unit_expect_error(ret, i % 2 ? "rpma_post" : "rpma_batch_post", &e, __FILE__, __LINE__);
    }
}

// With a native flush in the list, none of it is taken, and the error is not reported as a full
// queue, though it has the same number.
TEST_THAT(too_much_beside_a_native_flush_is_refused) {
    uint32_t posted = 7;
    new_batch(true, true); // with room for 8 pieces, or 128 bytes
    for (int i = 0; i < 2; i++) {
        const struct rpma_work flush = operation_of(&w, RPMA_WORK_FLUSH);
        struct rpma_work write = operation_of(&w, RPMA_WORK_WRITE);
        write.flags |= RPMA_F_INLINE;
        write.local.len = i ? 129 : 128;
        MUST(rpma_batch_add(w.h.batch, i ? &write : &flush));
        MUST(rpma_batch_add(w.h.batch, i ? &flush : &write));
        if (i == 0)
            MUST(rpma_batch_post(w.h.batch, &posted));
    }
    EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_PROVIDER,
                 "ibv_wr_complete() failed", "ibv_wr_complete()", ENOSPC, .any_calls = true,
                 .before = "batch[0] to batch[3]: ",
                 .logs = "129 bytes are to go inline, the connection takes 128 at most");
    assert_int_equal(posted, 0);
    assert_int_equal(fake_posted_count(), 0);
}
#endif
