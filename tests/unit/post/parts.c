// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// parts.c -- arrays of operations and of receives: how many of them are posted, and where the
// next call continues; native_lists.c has the same for batches

#include "request.h"

#include <stdio.h>

enum { MAX_REQUESTS = 40 };

// An array of one operation with one SGE has its own code path.
static uint32_t length = MAX_REQUESTS;

static struct rpma_work work[MAX_REQUESTS];
static struct rpma_receive receives[MAX_REQUESTS];

// Operations and receives with 1 to LIST_MAX SGEs, and contexts from 0 on.
static void make_arrays(const struct list_function *f) {
    static struct rpma_sge sgl[LIST_MAX];
    for (int i = 0; i < LIST_MAX; i++)
        sgl[i] = list_sge(i);
    for (uint32_t i = 0; i < length; i++) {
        void *const context = (void *)(uintptr_t)i;
        const uint32_t nsge = length == 1 ? 0 : 1 + i % LIST_MAX;
        receives[i] = (struct rpma_receive){
            .local = sgl[0], .sgl = nsge ? sgl : NULL, .nsge = nsge, .op_context = context};
        work[i] = (struct rpma_work){.type = f->kind,
                                     .remote = f->remote ? w.h.remote : NULL,
                                     .local = sgl[0],
                                     .sgl = nsge ? sgl : NULL,
                                     .nsge = nsge,
                                     .flags = RPMA_F_COMPLETION_ALWAYS,
                                     .op_context = context};
    }
}

// Creates a new fixture, because the fakes never consume a receive.
static void begin_case(const struct list_function *f) {
    list_fixture_delete();
    fake_reset();
    list_fixture_new(f->srq, LIST_MAX);
    make_arrays(f);
}

static int post_list(const struct list_function *f, uint32_t from, uint32_t count,
                     uint32_t *posted) {
    return f->kind ? rpma_post(w.h.conn, work + from, count, posted)
                   : f->receive(receives + from, count, posted);
}

// Calls what() for each function with arrays of 40 and of 1.
static void for_each(void (*what)(const struct list_function *f)) {
    list_for_each(what);
    length = 1;
    list_for_each(what);
    length = MAX_REQUESTS;
}

// Expects these requests and no others, in this order.
static void expect_taken(const struct list_function *f, uint32_t from, uint32_t count) {
    assert_int_equal(f->kind ? fake_posted_count() : fake_received_count(), count);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(f->kind ? fake_posted(i)->wr_id : fake_received(i)->wr_id, from + i);
        assert_int_equal(f->kind ? fake_posted(i)->num_sge : fake_received(i)->num_sge,
                         1 + (from + i) % LIST_MAX);
    }
}

enum { CHUNK = 16 }; // requests of one provider call

static uint32_t expected_calls(uint32_t count) {
    return (count + CHUNK - 1) / CHUNK;
}

// Posts the rest of the array, and expects that nothing is posted twice.
static void post_rest(const struct list_function *f, uint32_t from) {
    uint32_t posted = 77;
    MUST(post_list(f, from, length - from, &posted));
    assert_int_equal(posted, length - from);
    assert_int_equal(fake_count(f->call), expected_calls(length - from));
    expect_taken(f, from, length - from);
}

static void expect_error(const struct list_function *f, uint32_t count, uint32_t taken,
                         struct expected_error expected) {
    uint32_t posted = 77;
    char before[64];
    snprintf(before, sizeof(before), "%s[%u]: ", f->element, taken);
    if (!expected.before)
        expected.before = before;
    expected.any_calls = true;
    unit_begin();
    unit_expect_error(post_list(f, 0, count, &posted), f->name, &expected, __FILE__, __LINE__);
    assert_int_equal(posted, taken);
    expect_taken(f, 0, taken);
}

// ---- whole arrays --------------------------------------------------------------------------

static void post_whole(const struct list_function *f) {
    for (uint32_t count = 0; count <= length; count++) {
        uint32_t posted = 77;
        begin_case(f);
        MUST(post_list(f, 0, count, &posted));
        assert_int_equal(posted, count);
        assert_int_equal(fake_count(f->call), expected_calls(count));
        expect_taken(f, 0, count);
    }
    if (length == 1 && f->kind)
        EXPECT_ERROR(rpma_post(NULL, work, 1, NULL), RPMA_E_INVAL, "conn == NULL",
                     "conn == NULL", .logs = "conn == NULL");
    MUST(post_list(f, 0, 0, NULL));
    MUST(f->kind ? rpma_post(w.h.conn, NULL, 0, NULL) : f->receive(NULL, 0, NULL));
    EXPECT_CALLS("");
}

TEST_THAT(lists_are_posted_in_few_calls) {
    for_each(post_whole);
}

// A provider call has at most 128 SGEs, and only complete operations. One SGE may be empty.
static void post_long_lists(const struct list_function *f) {
    enum { MAX_SGES = 128, MAX_LIST = FAKE_MAX_SRQ_SGE };
    static const uint32_t counts[] = {MAX_SGES / 8, MAX_LIST};
    for (size_t i = 0; i < LENGTH(counts); i++) {
        struct rpma_sge sgl[2][MAX_LIST]; // operations use them in turn
        uint32_t posted = 0;
        list_fixture_delete();
        fake_reset();
        list_fixture_new(f->srq, MAX_LIST);
        make_arrays(f);
        for (int k = 0; k < 2 * MAX_LIST; k++)
            sgl[k % 2][k / 2] = (struct rpma_sge){list_regions[k / 2 % 3], (size_t)k,
                                                  k / 2 == 1 && i == 1 ? 0 : (size_t)k + 1};
        for (uint32_t k = 0; k < MAX_REQUESTS; k++) {
            work[k].sgl = receives[k].sgl = sgl[k % 2];
            work[k].nsge = receives[k].nsge = counts[i];
        }
        MUST(post_list(f, 0, MAX_REQUESTS, &posted));
        assert_int_equal(posted, MAX_REQUESTS);
        assert_int_equal(fake_count(f->call), MAX_REQUESTS / (MAX_SGES / counts[i]));
        for (unsigned n = 0; n < MAX_REQUESTS; n++) {
            struct fake_sg_list expected = {0}, got = f->kind ? fake_posted(n)->sg_list
                                                              : fake_received(n)->sg_list;
            for (uint32_t k = 0; k < counts[i]; k++)
                append_sge(&expected, &sgl[n % 2][k]);
            assert_memory_equal(&got, &expected, sizeof(got));
        }
    }
}

TEST_THAT(sges_are_split_into_posts) {
    list_for_each(post_long_lists);
}

// ---- partially posted arrays ---------------------------------------------------------------

static void reject_one_invalid(const struct list_function *f) {
    static const uint32_t counts[] = {1, 2, 16, 17, MAX_REQUESTS};
    for (size_t c = 0; c < LENGTH(counts); c++)
        for (uint32_t wrong = 0; wrong < counts[c]; wrong++) {
            const char *const cause = f->kind ? "reserved0 != 0" : "reserved != 0";
            begin_case(f);
            work[wrong].reserved0 = receives[wrong].reserved = 1;
            expect_error(f, counts[c], wrong,
                         (struct expected_error){RPMA_E_INVAL, cause, cause,
                                                 .logs = f->kind ? "work.reserved0 is 0x1"
                                                                 : "receive.reserved is 0x1"});
            assert_int_equal(fake_count(f->call), expected_calls(wrong));
            work[wrong].reserved0 = receives[wrong].reserved = 0;
            post_rest(f, wrong);
        }
}

TEST_THAT(requests_before_an_invalid_one_are_posted) {
    list_for_each(reject_one_invalid);
}

// Makes the provider reject the request with that number, from 0.
static void reject(const struct list_function *f, uint32_t number, int error) {
    if (number % CHUNK == 0)
        fake_fail(f->call, number / CHUNK + 1, error);
    else
        fake_fail(f->kind ? "refuse ibv_post_send" : "refuse ibv_post_recv",
                  number - number / CHUNK, error);
}

// The next call begins with the rejected request, for any result of a provider. The first four
// mean a full queue, whose log line names the setting of its size.
static void reject_each(const struct list_function *f) {
    static const struct {
        int returned, error;
        const char *logs;
    } reasons[] = {{ENOMEM, 0, NULL}, {-ENOMEM, 0, NULL},     {ENOSPC, 0, NULL},
                   {-1, 0, NULL},     {EINVAL, EINVAL, NULL}, {-EINVAL, EINVAL, NULL},
                   {-EIO, EIO, "(5)"}};
    enum { FULL = 4 };
    const char *const full = f->kind  ? "the send queue is full"
                             : f->srq ? "the shared receive queue is full"
                                      : "the receive queue is full";
    char again[128], failed[64];
    snprintf(again, sizeof(again),
             ": poll completions before the next post, or raise the size with %s()",
             f->kind  ? "rpma_conn_cfg_set_sq_size"
             : f->srq ? "rpma_srq_cfg_set_rq_size"
                      : "rpma_conn_cfg_set_rq_size");
    snprintf(failed, sizeof(failed), "%s failed", f->cause);
    for (uint32_t i = 0; i < length * LENGTH(reasons); i++) {
        const uint32_t number = i / LENGTH(reasons), r = i % LENGTH(reasons);
        begin_case(f);
        fake_profile()->keeps_bad_wr = i % 2 && f->kind; // successful calls do not set bad_wr
        reject(f, number, reasons[r].returned);
        if (r < FULL)
            expect_error(f, length, number,
                         (struct expected_error){RPMA_E_AGAIN, full, full, .logs = again});
        else
            expect_error(f, length, number,
                         (struct expected_error){RPMA_E_PROVIDER, failed, f->cause,
                                                 reasons[r].error, .logs = reasons[r].logs});
        fake_faults_off();
        post_rest(f, number);
    }
}

TEST_THAT(refused_request_is_first_in_the_next_call) {
    for_each(reject_each);
}

// rdma-core 56, providers/siw/siw.c, siw_post_send(): the 0 of its doorbell hides the error of
// a rejected request. A second call that begins with this request returns the error.
static void read_hidden_error(const struct list_function *f) {
    for (uint32_t number = 1; f->kind && number < 16 && number < length; number++) {
        begin_case(f);
        fake_profile()->hides_refusals = true;
        reject(f, number, ENOMEM);
        fake_fail("ibv_post_send", 2, ENOMEM);
        expect_error(f, length, number,
                     (struct expected_error){RPMA_E_AGAIN, "the send queue is full",
                                             "the send queue is full"});
        fake_faults_off();
        post_rest(f, number);
        reject(f, number, ENOMEM);
        MUST(post_list(f, 0, length, NULL)); // the second call has room
        expect_taken(f, 0, length);
    }
}

TEST_THAT(rejection_is_reported_on_each_retry) {
    for_each(read_hidden_error);
}

// Queued requests are not posted again, even if the doorbell failed.
static void fail_doorbell(const struct list_function *f) {
    for (uint32_t count = 1; f->kind && count <= length; count++)
        for (uint32_t nth = 0; nth < expected_calls(count); nth++) {
            const uint32_t first = nth * CHUNK, rest = count - first;
            const uint32_t taken = first + (rest < CHUNK ? rest : CHUNK);
            const char *const element = f->element;
            char before[64], last[32] = "";
            // ENOMEM is also the error number of a full queue.
            const int error = count % 2 ? ENOMEM : EIO;
            begin_case(f);
            fake_fail("doorbell", nth + 1, error);
            if (taken - first > 1)
                snprintf(last, sizeof(last), " to %s[%u]", element, taken - 1);
            snprintf(before, sizeof(before), "%s[%u]%s (queued): ", element, first, last);
            expect_error(f, count, taken,
                         (struct expected_error){RPMA_E_PROVIDER, "ibv_post_send() failed",
                                                 "ibv_post_send()", error, .before = before,
                                                 .logs = "; do not post them again"});
            fake_faults_off();
            if (taken < length)
                post_rest(f, taken);
        }
    for (uint32_t number = 1; f->kind && number < 16 && number < length; number++) {
        begin_case(f);
        reject(f, number, EINVAL);
        fake_fail("doorbell", 1, EIO); // replaces the error of the rejected request
        expect_error(f, length, number,
                     (struct expected_error){RPMA_E_PROVIDER, "ibv_post_send() failed",
                                             "ibv_post_send()", EIO});
        fake_faults_off();
        post_rest(f, number);
    }
}

TEST_THAT(failed_doorbell_is_reported) {
    for_each(fail_doorbell);
}
