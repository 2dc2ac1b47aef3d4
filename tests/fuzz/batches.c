// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batches.c -- adds random operations to a batch, replaces them, and posts batches and arrays,
// valid or not, against a simple model: the list of valid operations, and the number that the
// device accepted
//
// The posted work requests must equal those of request.h, which implements the manual.

#include "random.h"
#include "request.h"

enum { FIXTURES = 60, STEPS = 400, CAPACITY = 12 };

// The operations in the batch. taken: the number of operations that partial posts have
// accepted.
static struct fake_post list[CAPACITY];
static unsigned length, taken;
static unsigned long accepted, refused, whole, partial;

// Small sizes, and sizes at the limits.
static size_t random_size(void) {
    static const size_t edges[] = {0, UINT32_MAX, (size_t)UINT32_MAX + 1, SIZE_MAX};
    return now_and_then(8) ? edges[below(LENGTH(edges))] : below(100);
}

static bool is_remote_atomic(const struct rpma_work *o) {
    return o->type == RPMA_WORK_FETCH_ADD || o->type == RPMA_WORK_COMPARE_SWAP;
}

static struct rpma_work random_work(void) {
    static struct rpma_sge sgls[CAPACITY][OPERATION_MAX_SGES];
    static unsigned next;
    struct rpma_sge *sgl = sgls[next++ % CAPACITY];
    const bool is_list = now_and_then(3), is_empty = now_and_then(9);
    for (size_t i = 0; i < OPERATION_MAX_SGES; i++)
        sgl[i] = now_and_then(9)
                     ? (struct rpma_sge){NULL, 0, 0}
                     : (struct rpma_sge){now_and_then(30) ? NULL : w.h.mr, random_size(),
                                         now_and_then(9) ? random_size() : below(100)};
    struct rpma_work work = {
        .type = (enum rpma_work_type)(now_and_then(20) ? below(12)
                                                       : 1 + below(RPMA_WORK_COMPARE_SWAP)),
        .imm = (uint32_t)random_64(),
        .remote = is_empty           ? NULL
                  : now_and_then(20) ? NULL
                  : now_and_then(9)  ? misaligned
                                     : w.h.remote,
        .remote_offset = is_empty          ? 0
                         : now_and_then(9) ? random_size()
                                           : 8u * below(8),
        .local = {is_empty || now_and_then(20) ? NULL : w.h.mr, is_empty ? 0 : random_size(),
                  is_empty ? 0 : random_size()},
        .sgl = is_list != now_and_then(20) ? sgl : NULL,
        .nsge = is_list ? 1 + below(LIST_MAX + 1) : 0,
        .flush_type = (enum rpma_flush_type)(now_and_then(9) ? below(4) : below(2)),
        .flush_len = random_size(),
        .value = random_64(),
        .flags = now_and_then(9)   ? (int)below(16)
                 : now_and_then(2) ? 1
                                   : 3,
        .reserved0 = now_and_then(50),
        .op_context = (void *)(uintptr_t)random_64(),
        .compare = random_64(),
        .reserved1 = now_and_then(50),
    };
    if (is_remote_atomic(&work) && !now_and_then(4)) {
        work.remote = now_and_then(9) ? w.h.remote : misaligned;
        work.remote_offset = 4 + 8u * below(7);
        work.local = (struct rpma_sge){w.h.mr, random_size(), 8};
        work.sgl = NULL;
        work.nsge = 0;
    }
    // rpma_post() copies inline data, and rejects more than the limit of the connection.
    if ((work.flags & RPMA_F_INLINE) != 0 &&
        (is_list || work.local.len > 8 || work.local.offset > sizeof(w.memory) - 8))
        work.flags &= ~RPMA_F_INLINE;
    return work;
}

static bool is_valid_sge(const struct rpma_sge *sge) {
    return sge->mr || (sge->offset == 0 && sge->len == 0);
}

static bool has_valid_sges(const struct rpma_work *o) {
    size_t room = UINT32_MAX;
    if (o->nsge == 0)
        return !o->sgl && is_valid_sge(&o->local) && o->local.len <= UINT32_MAX;
    if (!o->sgl || o->nsge > LIST_MAX)
        return false;
    for (uint32_t i = 0; i < o->nsge; i++) {
        if (!is_valid_sge(&o->sgl[i]) || o->sgl[i].len > room)
            return false;
        room -= o->sgl[i].len;
    }
    return true;
}

// Returns whether librpma.h allows the operation.
static bool is_valid(const struct rpma_work *o) {
    const bool is_send = o->type == RPMA_WORK_SEND || o->type == RPMA_WORK_SEND_WITH_IMM;
    const bool takes_inline =
        is_send || o->type == RPMA_WORK_WRITE || o->type == RPMA_WORK_WRITE_WITH_IMM;
    const int others = ~(RPMA_F_COMPLETION_ALWAYS | (takes_inline ? RPMA_F_INLINE : 0) |
                         (takes_inline && o->type != RPMA_WORK_WRITE ? RPMA_F_SOLICITED : 0));
    if (o->type < 1 || o->type > RPMA_WORK_COMPARE_SWAP ||
        (o->flags & RPMA_F_COMPLETION_ON_ERROR) == 0 || (o->flags & others) != 0 ||
        o->reserved0 != 0 || o->reserved1 != 0)
        return false;
    if (o->type == RPMA_WORK_ATOMIC_WRITE)
        return o->remote && o->remote_offset % 8 == 0;
    if (is_remote_atomic(o))
        return o->remote && o->local.mr && o->local.len == 8 && !o->sgl && o->nsge == 0 &&
               (o->remote_offset + (o->remote == misaligned ? 4 : 0)) % 8 == 0;
    if (o->type == RPMA_WORK_FLUSH)
        return o->remote && o->remote_offset < FIXTURE_REMOTE_SIZE &&
               o->flush_type <= RPMA_FLUSH_TYPE_VISIBILITY && o->flush_len <= UINT32_MAX;
    const bool has_local = o->nsge != 0 || o->local.mr;
    if (!is_send && (!o->remote == has_local || (!o->remote && o->remote_offset != 0)))
        return false;
    return has_valid_sges(o);
}

static int expected_code(const struct rpma_work *o) {
    return !is_valid(o)                                     ? RPMA_E_INVAL
           : is_remote_atomic(o) && o->remote != misaligned ? RPMA_E_NOSUPP
                                                            : 0;
}

// Replaces an operation of the batch, or appends one.
static void add_operations(void) {
    const struct rpma_work o = random_work();
    const bool sets = length > 0 && now_and_then(3);
    const int code = expected_code(&o);
    const unsigned index = sets ? below(length) : length;
    const struct fake_post post = code == 0 ? request(&o) : (const struct fake_post){0};
    uint32_t size = 0, room = 0;
    unit_begin();
    const int ret = sets ? rpma_batch_set(w.h.batch, index, &o) : rpma_batch_add(w.h.batch, &o);
    EXPECT_CALLS("");
    if (code != 0 || index == CAPACITY) {
        assert_int_equal(ret, index == CAPACITY ? RPMA_E_INVAL : code);
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_ERROR), 1);
        refused++;
    } else {
        assert_int_equal(ret, 0);
        list[index] = post;
        length += !sets;
        accepted++;
    }
    MUST(rpma_batch_get_size(w.h.batch, &size, &room));
    assert_int_equal(size, length);
    assert_int_equal(room, CAPACITY - length);
}

// Makes the provider reject the nth pending operation, if it exists. Then the doorbell may
// fail, or succeed and hide the rejection, so that the library posts the rest again. Returns
// the number of accepted operations.
static unsigned inject_failures(unsigned pending, int *code) {
    const unsigned nth = 1 + below(2 * CAPACITY);
    const bool is_refused = nth <= pending, rings = !now_and_then(4);
    const bool keeps = now_and_then(2);
    // Only siw hides a rejection: siw_post_send() of rdma-core.
    const bool hides = fake_profile()->transport == SIM_IWARP && now_and_then(2);
    fake_profile()->keeps_bad_wr = keeps;
    fake_profile()->hides_refusals = hides;
    fake_fail(nth == 1 ? "ibv_post_send" : "refuse ibv_post_send", nth == 1 ? 1 : nth - 1,
              ENOMEM);
    // A failed doorbell after a complete list is only detectable if the provider sets bad_wr.
    const bool fails = pending > 0 && !rings && !keeps;
    if (!rings && !keeps)
        fake_fail("doorbell", 1, EIO);
    const bool rung = fails && nth != 1;
    *code = rung ? RPMA_E_PROVIDER : is_refused && (nth == 1 || !hides) ? RPMA_E_AGAIN : 0;
    return is_refused && *code != 0 ? nth - 1 : pending;
}

static void expect_posted(const struct fake_post *expected, unsigned count) {
    assert_int_equal(fake_posted_count(), count);
    for (unsigned i = 0; i < count; i++) {
        const struct fake_post got = operation_posted(i);
        operation_compare(&got, &expected[i], "an operation");
    }
}

static void post_batch(void) {
    const unsigned pending = length - taken;
    uint32_t posted = UINT32_MAX;
    int code;
    const unsigned got = inject_failures(pending, &code);
    unit_begin();
    const int ret = rpma_batch_post(w.h.batch, now_and_then(5) ? NULL : &posted);
    fake_faults_off();
    assert_int_equal(ret, code);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_ERROR), code == RPMA_E_PROVIDER);
    assert_true(posted == UINT32_MAX || posted == got);
    assert_int_equal(fake_count("ibv_post_send") > 0, pending > 0);
    expect_posted(list + taken, got);
    taken = got < pending ? taken + got : 0;
    whole += got == pending;
    partial += got < pending;
}

// Posts an array up to its first invalid operation.
static void post_array(void) {
    struct rpma_work work[CAPACITY];
    struct fake_post expected[CAPACITY];
    const unsigned count = below(CAPACITY + 1);
    unsigned valid = 0;
    uint32_t posted = UINT32_MAX;
    int code;
    for (unsigned i = 0; i < count; i++)
        do
            work[i] = random_work();
        while (expected_code(&work[i]) != 0 && !now_and_then(20));
    while (valid < count && expected_code(&work[valid]) == 0) {
        expected[valid] = request(&work[valid]);
        valid++;
    }
    const unsigned got = inject_failures(valid, &code);
    unit_begin();
    const int ret = rpma_post(w.h.conn, work, count, now_and_then(5) ? NULL : &posted);
    fake_faults_off();
    assert_int_equal(ret, code != 0 ? code : valid < count ? expected_code(&work[valid]) : 0);
    assert_true(posted == UINT32_MAX || posted == got);
    expect_posted(expected, got);
    (got == count ? &whole : &partial)[0]++;
}

static void reset(void) {
    MUST(rpma_batch_reset(w.h.batch));
    EXPECT_CALLS("");
    length = taken = 0;
}

static void run_random_steps(void) {
    request_begin(false, false, CAPACITY);
    if (now_and_then(2)) { // a batch looks up the transport when it is created
        fake_profile()->transport = SIM_IWARP;
        fixture_qp(&w)->context->device->transport_type = IBV_TRANSPORT_IWARP;
        MUST(rpma_batch_delete(&w.h.batch));
        MUST(rpma_batch_new(w.h.conn, CAPACITY, &w.h.batch));
    }
    fake_device()->any_range = true;
    length = taken = 0;
    for (int i = 0; i < STEPS; i++) {
        const unsigned what = below(10);
        if (what < 6)
            add_operations();
        else if (what < 8)
            post_batch();
        else if (what < 9)
            post_array();
        else if (now_and_then(2))
            reset();
    }
    request_end();
    unit_nothing_left("after some steps");
}

TEST_THAT(batches_match_the_model) {
    for (int i = 0; i < FIXTURES; i++)
        run_random_steps();
    print_message("%lu operations added, %lu refused, %lu lists posted whole, %lu in part\n",
                  accepted, refused, whole, partial);
    assert_true(accepted > 1000 && refused > 1000 && whole > 1000 && partial > 1000);
}
