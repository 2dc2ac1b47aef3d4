// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// native_lists.c -- arrays and batches on devices with native flush and atomic write: a build
// with these operations posts the list to an extended queue pair, any other build posts it as
// an ordinary list. Each test expects the result of its build.

#include "request.h"

#include <stdio.h>
#include <stdlib.h>

// Operations of every type, in each form.
static const struct {
    enum rpma_work_type kind;
    enum form { ONE, LIST, EMPTY, MISALIGNED } form;
} operations[] = {
    {RPMA_WORK_READ, ONE},
    {RPMA_WORK_READ, LIST},
    {RPMA_WORK_WRITE, ONE},
    {RPMA_WORK_WRITE, LIST},
    {RPMA_WORK_WRITE_WITH_IMM, ONE},
    {RPMA_WORK_WRITE_WITH_IMM, LIST},
    {RPMA_WORK_ATOMIC_WRITE, ONE},
    {RPMA_WORK_ATOMIC_WRITE, MISALIGNED}, // posted as an ordinary write
    {RPMA_WORK_FLUSH, ONE},
    {RPMA_WORK_SEND, ONE},
    {RPMA_WORK_SEND, LIST},
    {RPMA_WORK_SEND_WITH_IMM, ONE},
    {RPMA_WORK_SEND_WITH_IMM, LIST},
    {RPMA_WORK_FETCH_ADD, MISALIGNED},
    {RPMA_WORK_COMPARE_SWAP, MISALIGNED},
    {RPMA_WORK_WRITE, EMPTY}, // has no inline bytes
};
enum { OPERATIONS = LENGTH(operations) }; // as many as rpma_post() posts in one call

static unsigned num_sge = 3; // SGEs of operations with a list

// Tests post an array by rpma_post() from the first operation that was not accepted, or a
// batch, which continues at that operation.
static bool by_array;
static struct rpma_work work[OPERATIONS];
static struct fake_post expected[OPERATIONS];
static unsigned taken;

static struct rpma_work operation_number(size_t i, int flags) {
    static struct rpma_sge sgl[LIST_MAX];
    struct rpma_work o = operation_of(&w, operations[i].kind);
    o.flags = flags;
    o.op_context = (void *)(0x100 + i);
    for (int k = 0; k < LIST_MAX; k++)
        sgl[k] = list_sge(k);
    if (operations[i].form == LIST) {
        o.sgl = sgl;
        o.nsge = num_sge;
    } else if (operations[i].form == MISALIGNED) {
        o.remote = misaligned;
        o.remote_offset = o.type == RPMA_WORK_ATOMIC_WRITE ? 16 : 20;
    } else if (operations[i].form == EMPTY) {
        o.remote = NULL;
        o.remote_offset = 0;
        o.local = (struct rpma_sge){NULL, 0, 0};
        o.flags |= RPMA_F_INLINE;
    }
    return o;
}

static void begin_every_kind(bool flush, bool atomic_write, int flags) {
    request_begin(flush, atomic_write, OPERATIONS);
    taken = 0;
    for (size_t i = 0; i < OPERATIONS; i++) {
        work[i] = operation_number(i, flags);
        expected[i] = request(&work[i]);
        unit_begin();
        assert_int_equal(rpma_batch_add(w.h.batch, &work[i]), 0);
        EXPECT_CALLS("");
    }
    if (!by_array)
        memset(work, 'x', sizeof(work)); // the batch has copied it
}

static int post_list(uint32_t *posted) {
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

// Posts all operations twice, and expects these numbers of provider calls each time.
static void expect_all_posted_twice(unsigned lists, unsigned runs) {
    for (int again = 0; again < 2; again++) {
        uint32_t posted = 0;
        MUST(post_list(&posted));
        assert_int_equal(posted, OPERATIONS);
        assert_int_equal(fake_count("ibv_post_send"), lists);
        assert_int_equal(fake_count("ibv_wr_start"), runs);
        assert_int_equal(fake_count("ibv_wr_complete"), runs);
        expect_posted(0, OPERATIONS);
    }
}

// ---- lists of every kind -------------------------------------------------------------------

// Counts the operations with several SGEs, or the runs of other operations between them.
static unsigned runs(bool of_lists) {
    unsigned count = 0;
    for (unsigned i = 0; i < OPERATIONS; i++) {
        const bool is_list = operations[i].form == LIST;
        const bool was_list = i > 0 && operations[i - 1].form == LIST;
        count += is_list == of_lists && (of_lists || i == 0 || was_list);
    }
    return count;
}

// wr_set_sge_list() of rxe computes a wrong length of several SGEs, so ibv_post_send()
// posts these operations.
TEST_THAT(multi_sge_requests_split_a_native_list) {
    for (int i = 0; i < 64; i++) {
        num_sge = 1 + i % 4 % 3;
        by_array = i & 4;
        begin_every_kind(i & 8, i & 16,
                         i & 32 ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR);
        const bool native = flushes || writes_atomically, is_cut = native && num_sge > 1;
        fake_profile()->keeps_bad_wr = i % 4 == 3;
        expect_all_posted_twice(is_cut ? runs(true) : !native, is_cut ? runs(false) : native);
        request_end();
    }
}

// ---- rejected operations -------------------------------------------------------------------

// Returns true if the nth fault makes a post fail, *posted is the number of queued operations,
// and the next post continues with the rest, or starts over if there is none.
static bool continues_after(const char *fault, unsigned nth, int error) {
    uint32_t posted = 77;
    begin_every_kind(true, true, RPMA_F_COMPLETION_ALWAYS);
    fake_fail(fault, nth, error);
    fake_forget();
    const int ret = post_list(&posted);
    fake_faults_off();
    if (ret != 0) {
        const bool is_full =
            error == ENOSPC || (error == ENOMEM && strcmp(fault, "doorbell") != 0);
        assert_int_equal(ret, is_full ? RPMA_E_AGAIN : RPMA_E_PROVIDER);
        assert_int_equal(fake_posted_count(), posted);
        const unsigned next = taken;
        MUST(post_list(&posted));
        assert_int_equal(posted, OPERATIONS - next);
        expect_posted(next, OPERATIONS - next);
        MUST(post_list(&posted));
        expect_posted(0, OPERATIONS);
    }
    request_end();
    return ret != 0;
}

// After a failed call, operation or doorbell, nothing is posted twice and nothing is lost, in
// lists with multi-SGE operations and in lists that one call posts. A native list is posted
// completely or not at all.
TEST_THAT(nothing_is_posted_twice) {
    const bool native = BUILD_FLUSHES || BUILD_WRITES_ATOMICALLY;
    for (int i = 0; i < 4; i++) {
        num_sge = i % 2 ? 3 : 1;
        by_array = i / 2;
        struct {
            const char *fault;
            int error;
            unsigned places; // number of calls whose failure makes a post fail
        } faults[] = {{"ibv_wr_complete", ENOSPC, 0},
                      {"ibv_post_send", ENOMEM, 0},
                      {"refuse ibv_post_send", ENOSPC, 0},
                      {"doorbell", EIO, 0},
                      {"doorbell", -1, 0},
                      {"doorbell", ENOMEM, 0}};
        for (size_t f = 0; f < LENGTH(faults); f++)
            while (continues_after(faults[f].fault, faults[f].places + 1, faults[f].error))
                faults[f].places++;
        const bool is_cut = native && num_sge > 1;
        const unsigned lists = is_cut ? runs(true) : !native,
                       others = is_cut ? runs(false) : native;
        assert_int_equal(faults[0].places, others);
        assert_int_equal(faults[1].places, lists);
        assert_int_equal(faults[2].places, OPERATIONS - lists - others);
        assert_int_equal(faults[3].places, lists + others);
        assert_int_equal(faults[4].places, lists + others);
        assert_int_equal(faults[5].places, lists + others);
    }
}

#if defined(TEST_NATIVE_FLUSH) && defined(TEST_NATIVE_ATOMIC_WRITE)
// The line names the failed operations for any value of bad_wr. The letters of list are
// operations: write with a List, Write, Flush, Atomic write.
TEST_THAT(log_line_names_the_failed_call) {
    static const struct {
        const char *list;
        const char *fault; // its nth call fails
        unsigned nth;
        int error;
        const char *places[2]; // first and last failed operation, and their state
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
        {"FWL", "ibv_wr_complete", 1, ENOSPC, {"[0] to ", "[1]: "}, FIRST_FLUSH "0)"},
        {"FWL", "doorbell", 1, ENOMEM, {"[0] to ", "[1] (may be queued): "}, FIRST_FLUSH "0)"},
        // clang-format on
    };
    for (size_t i = 0; i < 2 * LENGTH(cases); i++) {
        const char *const array = i % 2 ? "work" : "batch";
        const size_t c = i / 2;
        const bool is_again = cases[c].error == ENOSPC;
        const bool is_range = strstr(cases[c].places[0], " to ") != NULL;
        char before[64];
        request_begin(true, true, 3);
        for (uintptr_t n = 0; n < 3; n++) {
            const char kind = cases[c].list[n];
            work[n] = kind == 'L'   ? operation_of_sges(&w, RPMA_WORK_WRITE, 2)
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
        request_end();
    }
}

// A list with a native flush is rejected completely. The error is not reported as a full
// queue, although it has the same number.
TEST_THAT(oversized_list_with_a_native_flush_is_refused) {
    uint32_t posted = 7;
    request_begin(true, true, 4);
    for (int i = 0; i < 2; i++) {
        const struct rpma_work flush = operation_of(&w, RPMA_WORK_FLUSH);
        struct rpma_work write = operation_of(&w, RPMA_WORK_WRITE);
        write.flags |= RPMA_F_INLINE;
        write.local.len = INLINE_ROOM + (unsigned)i;
        MUST(rpma_batch_add(w.h.batch, i ? &write : &flush));
        MUST(rpma_batch_add(w.h.batch, i ? &flush : &write));
        if (i == 0)
            MUST(rpma_batch_post(w.h.batch, &posted));
    }
    EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_PROVIDER,
                 "ibv_wr_complete() failed", "ibv_wr_complete()", ENOSPC, .any_calls = true,
                 .before = "batch[0] to batch[3]: ",
                 .logs = "81 bytes are to be sent inline, the connection allows 80 at most");
    assert_int_equal(posted, 0);
    assert_int_equal(fake_posted_count(), 0);
    request_end();
}
#endif
