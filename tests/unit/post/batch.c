// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch.c -- batches: adding and replacing operations, their number, and the lifetime of a
// batch; parts.c has lists that the device accepts partially

#include "request.h"

enum { MAX_OPS = 8 }; // max_ops of the batch

// A connection and a batch with room for MAX_OPS operations.
static void begin_batch(bool native) {
    fake_profile()->has_native_flush = fake_profile()->has_native_atomic_write = native;
    fixture_conn(&w, &(const struct shape){.max_sge = 2});
    MUST(rpma_batch_new(w.h.conn, MAX_OPS, &w.h.batch));
}

// A write with this number as context; its offset and length also depend on the number.
static struct rpma_work write_number(unsigned number) {
    return (struct rpma_work){.type = RPMA_WORK_WRITE,
                              .remote = w.h.remote,
                              .local = {w.h.mr, number, number + 1},
                              .flags = RPMA_F_COMPLETION_ALWAYS,
                              .op_context = (void *)(uintptr_t)number};
}

// Adds writes with numbers from first on.
static void add_operations(unsigned first, unsigned count) {
    for (unsigned i = first; i < first + count; i++)
        MUST(rpma_batch_add(w.h.batch, (const struct rpma_work[]){write_number(i)}));
}

static void expect_size(uint32_t expected) {
    uint32_t size = 77, room = 77;
    MUST(rpma_batch_get_size(w.h.batch, &size, NULL));
    MUST(rpma_batch_get_size(w.h.batch, NULL, &room));
    EXPECT_CALLS("");
    assert_int_equal(size, expected);
    assert_int_equal(room, MAX_OPS - expected);
}

// Replaces an operation by the write with this number.
static void set_operation(uint32_t index, unsigned number) {
    const struct rpma_work work = write_number(number);
    MUST(rpma_batch_set(w.h.batch, index, &work));
    EXPECT_CALLS("");
}

// Expects that the device got the operations with these numbers, which are digits.
static void expect_numbers(const char *numbers) {
    assert_int_equal(fake_posted_count(), strlen(numbers));
    for (unsigned i = 0; numbers[i]; i++) {
        assert_int_equal(fake_posted(i)->wr_id, numbers[i] - '0');
        assert_int_equal(fake_posted(i)->sge.addr,
                         (uintptr_t)w.memory + (unsigned)numbers[i] - '0');
        assert_int_equal(fake_posted(i)->sge.length, numbers[i] - '0' + 1);
    }
}

static int (*post_to_fake)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static struct ibv_send_wr seen;

static int record_and_post(struct ibv_qp *qp, struct ibv_send_wr *wr,
                           struct ibv_send_wr **bad) {
    memcpy(&seen, wr, sizeof(seen));
    return post_to_fake(qp, wr, bad);
}

// Providers may copy a whole request with the members that the operation does not use.
TEST_THAT(unset_bytes_of_a_request_are_zero) {
    const size_t set = offsetof(struct ibv_send_wr, wr.rdma) + sizeof(seen.wr.rdma);
    static const unsigned char zeros[sizeof(seen)];
    for (int kind = RPMA_WORK_READ; kind <= OPERATION_LAST; kind++) {
        fixture_reset();
        begin_batch(false);
        const struct rpma_work work = operation_of(&w, (enum rpma_work_type)kind);
        struct ibv_context *context = fixture_qp(&w)->context;
        MUST(rpma_batch_add(w.h.batch, &work));
        post_to_fake = context->ops.post_send;
        context->ops.post_send = record_and_post;
        const int ret = rpma_batch_post(w.h.batch, NULL);
        context->ops.post_send = post_to_fake;
        assert_int_equal(ret, 0);
        assert_int_equal(seen.wr_id, (uintptr_t)work.op_context);
        assert_memory_equal((const unsigned char *)&seen + set, zeros, sizeof(seen) - set);
    }
}

static void post_and_expect(const char *numbers) {
    uint32_t posted = 77;
    MUST(rpma_batch_post(w.h.batch, &posted));
    EXPECT_CALLS(*numbers ? "ibv_post_send" : "");
    assert_int_equal(posted, strlen(numbers));
    expect_numbers(numbers);
}

// Posts with room in the send queue for this many operations.
static void post_with_room(unsigned room, const char *numbers) {
    uint32_t posted = 77;
    fake_fail(room ? "refuse ibv_post_send" : "ibv_post_send", room ? room : 1, ENOMEM);
    EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_AGAIN, "the send queue is full",
                 "the send queue is full", .calls = "ibv_post_send");
    fake_faults_off();
    assert_int_equal(posted, room);
    expect_numbers(numbers);
}

// ---- replacing operations of every type ----------------------------------------------------

// Replaces one of three operations, before or after the first post. After a reset, adds the
// old operation again, which then uses the memory of the new one.
static void replace(const struct rpma_work *old, const struct rpma_work *new, uint32_t index,
                    bool posted) {
    const struct rpma_work other = write_number(3);
    const struct fake_post around = request(&other);
    const struct fake_post expected = request(new);
    MUST(rpma_batch_reset(w.h.batch));
    for (uint32_t i = 0; i < 3; i++)
        MUST(rpma_batch_add(w.h.batch, i == index ? old : &other));
    if (posted)
        MUST(rpma_batch_post(w.h.batch, NULL));
    MUST(rpma_batch_set(w.h.batch, index, new));
    EXPECT_CALLS("");
    for (int again = 0; again < 2; again++) {
        MUST(rpma_batch_post(w.h.batch, NULL));
        assert_int_equal(fake_posted_count(), 3);
        for (uint32_t i = 0; i < 3; i++) {
            const struct fake_post got = operation_posted(i);
            operation_compare(&got, i == index ? &expected : &around, "replaced");
        }
    }
    MUST(rpma_batch_reset(w.h.batch));
    MUST(rpma_batch_add(w.h.batch, old));
    MUST(rpma_batch_post(w.h.batch, NULL));
    const struct fake_post got = operation_posted(0), before = request(old);
    operation_compare(&got, &before, "added after a reset");
}

// Two operations of each type: with one SGE, and with two if the type permits that.
static struct rpma_work operation(unsigned number) {
    const enum rpma_work_type kind = (enum rpma_work_type)(1 + number / 2);
    return number % 2 && kind != RPMA_WORK_ATOMIC_WRITE && kind != RPMA_WORK_FLUSH
               ? operation_of_sges(&w, kind, 2)
               : operation_of(&w, kind);
}

TEST_THAT(every_kind_replaces_every_kind) {
    for (int native = 0; native < 2; native++) {
        request_begin(native, native, MAX_OPS);
        for (unsigned i = 0; i < 2 * OPERATION_LAST * 2 * OPERATION_LAST; i++) {
            const struct rpma_work old = operation(i / (2 * OPERATION_LAST));
            struct rpma_work new = operation(i % (2 * OPERATION_LAST));
            new.op_context = (void *)0x77;
            replace(&old, &new, i % 3, i % 2);
        }
        request_end();
    }
}

// ---- partially posted lists ----------------------------------------------------------------

// If an operation was already posted, its replacement is posted in the next round only.
TEST_THAT(part_of_a_list_is_replaced) {
    begin_batch(false);
    add_operations(0, 4);
    post_with_room(2, "01");
    set_operation(0, 5);
    set_operation(3, 6);
    post_with_room(1, "2");
    set_operation(2, 7);
    post_and_expect("6");
    post_and_expect("5176");
    post_with_room(0, "");
    set_operation(0, 8);
    add_operations(4, 1); // adding to a list that was posted
    post_with_room(3, "817");
    expect_size(5);
    post_and_expect("64");
    post_and_expect("81764");
}

TEST_THAT(granted_sizes_are_logged) {
    begin_batch(false);
    expect_size(0);
    for (unsigned size = 1; size <= MAX_OPS; size++) {
        add_operations(size - 1, 1);
        expect_size(size);
        MUST(rpma_batch_post(w.h.batch, NULL));
        expect_size(size);
    }
    MUST(rpma_batch_get_size(w.h.batch, NULL, NULL));
    MUST(rpma_batch_reset(w.h.batch));
    expect_size(0);
}

TEST_THAT(reset_discards_each_rejected_operation) {
    begin_batch(false);
    for (unsigned room = 0; room < 3; room++) {
        static const char *const taken[] = {"", "0", "01"};
        add_operations(0, 3);
        post_with_room(room, taken[room]);
        MUST(rpma_batch_reset(w.h.batch));
        EXPECT_CALLS("");
        post_and_expect("");
        add_operations(1, MAX_OPS);
        post_and_expect("12345678");
        MUST(rpma_batch_reset(w.h.batch));
    }
}

// ---- memory and lifetime -------------------------------------------------------------------

TEST_THAT(no_batch_is_longer_than_a_send_queue) {
    fake_profile()->attr.max_qp_wr = 100;
    begin_batch(false);
    MUST(rpma_batch_delete(&w.h.batch));
    WATCH(w.h);
    EXPECT_ERROR(rpma_batch_new(w.h.conn, 101, &w.h.batch), RPMA_E_INVAL,
                 "max_qp_wr of the device", "max_ops > max_qp_wr of the device",
                 .logs = "max_ops is 101, a send queue of the device has 100");
    MUST(rpma_batch_new(w.h.conn, 100, &w.h.batch));
}

// A batch allocates its memory at its creation only. It is deleted correctly after its
// connection, even with outstanding operations. ../properties/failing.h has the failures.
TEST_THAT(memory_is_allocated_once) {
    begin_batch(false);
    fake_fail_from("malloc", 1, ENOMEM);
    add_operations(0, MAX_OPS);
    post_and_expect("01234567");
    fake_faults_off();
    MUST(rpma_conn_delete(&w.h.conn));
    MUST(rpma_batch_delete(&w.h.batch));
    EXPECT_CALLS("");
}

// More operations than 16 bits can count: replacing the last one, and a rejected operation near
// the end of the list.
TEST_THAT(long_list_is_refused_near_its_end) {
    enum { LONG = UINT16_MAX + 5 };
    uint32_t size, room, posted = 0;
    begin_batch(false);
    fake_device()->fast = true; // the queue is never full
    MUST(rpma_batch_delete(&w.h.batch));
    MUST(rpma_batch_new(w.h.conn, LONG, &w.h.batch));
    MUST(rpma_batch_get_size(w.h.batch, &size, &room));
    assert_int_equal(room, LONG);
    for (unsigned i = 0; i < LONG; i++)
        add_operations(1, 1);
    set_operation(LONG - 1, 2);
    MUST(rpma_batch_get_size(w.h.batch, &size, &room));
    assert_int_equal(size, LONG);
    assert_int_equal(room, 0);
    fake_fail("refuse ibv_post_send", LONG - 1, ENOMEM);
    EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_AGAIN, "the send queue is full",
                 "the send queue is full", .calls = "ibv_post_send",
                 .before = "batch[65539]: ibv_post_send(");
    assert_int_equal(posted, LONG - 1);
    fake_faults_off();
    post_and_expect("2");
}

// rdma-core 56, providers/siw/siw.c, siw_post_send(): the 0 of its doorbell hides the
// rejection.
TEST_THAT(rejection_hidden_by_siw_is_reported_by_each_post) {
    fake_profile()->transport = SIM_IWARP;
    fake_profile()->hides_refusals = true;
    begin_batch(false);
    add_operations(1, 3);
    for (int round = 0; round < 2; round++) { // the list has just changed, or is unchanged
        uint32_t posted = 77;
        fake_fail("refuse ibv_post_send", 1, ENOMEM);
        fake_fail("ibv_post_send", 2, ENOMEM);
        EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_AGAIN,
                     "the send queue is full", "the send queue is full",
                     .calls = "ibv_post_send ibv_post_send");
        fake_faults_off();
        assert_int_equal(posted, 1);
        expect_numbers("1");
        post_and_expect("23");
    }
}

TEST_THAT(log_line_omits_the_key_of_an_earlier_write) {
    begin_batch(false);
    struct rpma_work message = write_number(0);
    message.type = RPMA_WORK_SEND;
    add_operations(0, 1);
    MUST(rpma_batch_reset(w.h.batch));
    MUST(rpma_batch_add(w.h.batch, &message));
    post_with_room(0, "");
    assert_memory_equal(logged_line(RPMA_LOG_LEVEL_DEBUG, 1)->message, "rkey=0x0, ", 10);
}
