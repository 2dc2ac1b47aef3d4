// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// inline.c -- writes and sends whose bytes are copied while they are posted

#include "operation.h"

#define FLAGS (RPMA_F_COMPLETION_ALWAYS | RPMA_F_INLINE)

static struct world w;

// What carries bytes away, in one piece and in several.
static const enum operation_kind carriers[] = {
    OPERATION_WRITE,  OPERATION_WRITE_WITH_IMM,  OPERATION_SEND,  OPERATION_SEND_WITH_IMM,
    OPERATION_WRITEV, OPERATION_WRITEV_WITH_IMM, OPERATION_SENDV, OPERATION_SENDV_WITH_IMM,
};

static void new_conn(uint32_t inline_size) {
    world_peer(&w);
    world_cfg(&w, &(const struct shape){.max_sge = 2});
    MUST(rpma_conn_cfg_set_inline_size(w.h.cfg, inline_size));
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req));
    world_connect(&w, &(const struct shape){0});
    memcpy(w.memory, "0123456789abcdefghijklmnopqrstuvwxyz", 36);
}

// length bytes of the memory from offset 4 on, half of them in each of two elements.
static struct operation operation(enum operation_kind kind, size_t length) {
    static struct rpma_sge lists[4][2]; // of the operations that are held at once
    static unsigned number;
    struct rpma_sge *sgl = lists[number++ % LENGTH(lists)];
    sgl[0] = (struct rpma_sge){w.h.mr, 4, length / 2};
    sgl[1] = (struct rpma_sge){w.h.mr, 4 + length / 2, length - length / 2};
    return (struct operation){.kind = kind,
                              .local = w.h.mr,
                              .remote = w.h.remote,
                              .local_offset = 4,
                              .remote_offset = 8,
                              .len = length,
                              .sgl = sgl,
                              .nsge = 2,
                              .value = "8 bytes",
                              .type = RPMA_FLUSH_TYPE_VISIBILITY,
                              .flags = FLAGS};
}

static void bytes_are_copied_while_they_are_posted(void **state) {
    (void)state;
    new_conn(20);
    for (size_t i = 0; i < LENGTH(carriers); i++) {
        const struct operation o = operation(carriers[i], 20);
        fake_forget();
        MUST(operation_post(&o, w.h.conn));
        const struct fake_post *post = fake_posted(0);
        assert_int_equal(post->flags, IBV_SEND_SIGNALED | IBV_SEND_INLINE);
        assert_int_equal(post->inlined_bytes, 20);
        assert_memory_equal(post->inlined, "456789abcdefghijklmn", 20);
    }
    world_drop(&w);
}

// A batch holds addresses; what stands there is copied with each post.
static void batch_copies_with_each_post(void **state) {
    (void)state;
    new_conn(20);
    MUST(rpma_batch_new(w.h.conn, LENGTH(carriers), &w.h.batch));
    for (size_t i = 0; i < LENGTH(carriers); i++) {
        const struct operation o = operation(carriers[i], 20);
        MUST(operation_add(&o, w.h.batch));
    }
    for (int round = 0; round < 2; round++) {
        memcpy(w.memory + 4, round ? "second second second" : "first. first. first.", 20);
        fake_forget();
        MUST(rpma_batch_post(w.h.batch, NULL));
        assert_int_equal(fake_posted_count(), LENGTH(carriers));
        for (unsigned i = 0; i < LENGTH(carriers); i++)
            assert_memory_equal(fake_posted(i)->inlined, w.memory + 4, 20);
    }
    world_drop(&w);
}

// rxe would copy the memory that a read is for.
static void other_operations_ignore_the_flag(void **state) {
    (void)state;
    static const enum operation_kind others[] = {OPERATION_READ, OPERATION_READV};
    new_conn(20);
    for (size_t i = 0; i < LENGTH(others); i++) {
        const struct operation o = operation(others[i], 20);
        fake_forget();
        MUST(operation_post(&o, w.h.conn));
        assert_int_equal(fake_posted(0)->flags, IBV_SEND_SIGNALED);
    }
    MUST(rpma_flush(w.h.conn, w.h.remote, 8, 8, RPMA_FLUSH_TYPE_VISIBILITY, FLAGS, NULL));
    assert_int_equal(fake_posted(0)->flags & IBV_SEND_INLINE, 0);
    MUST(rpma_atomic_write(w.h.conn, w.h.remote, 8, "8 bytes", FLAGS, NULL));
    assert_memory_equal(fake_posted(0)->inlined, "8 bytes", 8);
    MUST(rpma_write_atomic(w.h.conn, w.h.remote, 8, w.h.mr, 16, FLAGS, NULL));
    assert_int_equal(fake_posted(0)->flags & IBV_SEND_INLINE, 0);
    world_drop(&w);
}

static void nothing_may_go_inline(void **state) {
    (void)state;
    new_conn(20);
    MUST(rpma_batch_new(w.h.conn, 2 * LENGTH(carriers), &w.h.batch));
    for (size_t i = 0; i < LENGTH(carriers); i++) {
        struct operation o = operation(carriers[i], 0);
        MUST(operation_post(&o, w.h.conn));
        MUST(operation_add(&o, w.h.batch));
        o.local = NULL;
        o.sgl = NULL;
        o.nsge = 0;
        o.local_offset = 0;
        if (carriers[i] == OPERATION_WRITE || carriers[i] == OPERATION_WRITE_WITH_IMM)
            o.remote = NULL;
        if (!o.remote)
            o.remote_offset = 0;
        MUST(operation_post(&o, w.h.conn));
        MUST(operation_add(&o, w.h.batch));
    }
    fake_forget();
    MUST(rpma_batch_post(w.h.batch, NULL));
    for (unsigned i = 0; i < 2 * LENGTH(carriers); i++)
        assert_int_equal(fake_posted(i)->inlined_bytes, 0);
    world_drop(&w);
}

// A provider may say the same of both (send_advice() of api/post.hh).
static void full_queue_is_told_from_too_much(void **state) {
    (void)state;
    new_conn(20);
    for (size_t i = 0; i < LENGTH(carriers); i++) {
        const struct operation most = operation(carriers[i], 32);
        fake_fail("ibv_post_send", 1, ENOMEM);
        unit_begin();
        unit_expect_error(operation_post(&most, w.h.conn), operation_name(most.kind),
                          &(struct expected_error){
                              RPMA_E_PROVIDER, "ibv_post_send() failed", "ibv_post_send()",
                              ENOMEM, .logs = "the send queue is full", .any_calls = true},
                          __FILE__, __LINE__);
        fake_faults_off();
    }
    world_drop(&w);
}

// The fakes make room for two elements of 16 bytes, as rxe does: 33 are one too many.
static void too_much_is_refused(void **state) {
    (void)state;
    static const char says[] = "33 bytes are to go inline, the connection takes 32 at most: "
                               "make it more with rpma_conn_cfg_set_inline_size()";
    static const int errors[] = {EINVAL, ENOMEM};
    new_conn(20);
    for (size_t e = 0; e < LENGTH(errors); e++)
        for (size_t i = 0; i < LENGTH(carriers); i++) {
            const struct operation most = operation(carriers[i], 32);
            const struct operation o = operation(carriers[i], 33);
            fake_device()->inline_error = errors[e];
            MUST(operation_post(&most, w.h.conn));
            fake_forget();
            unit_begin();
            unit_expect_error(operation_post(&o, w.h.conn), operation_name(o.kind),
                              &(struct expected_error){
                                  RPMA_E_PROVIDER, "ibv_post_send() failed", "ibv_post_send()",
                                  errors[e], .logs = says, .any_calls = true},
                              __FILE__, __LINE__);
            assert_int_equal(fake_posted_count(), 0);
        }
    world_drop(&w);
}

static void too_much_in_a_batch_is_refused(void **state) {
    (void)state;
    uint32_t posted = 7;
    new_conn(20);
    MUST(rpma_batch_new(w.h.conn, 3, &w.h.batch));
    const struct operation fits = operation(OPERATION_WRITE, 8);
    const struct operation too_long = operation(OPERATION_WRITE, 33);
    MUST(operation_add(&fits, w.h.batch));
    MUST(operation_add(&too_long, w.h.batch));
    MUST(operation_add(&fits, w.h.batch));
    fake_forget();
    EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_PROVIDER, "ibv_post_send() failed",
                 "ibv_post_send()", EINVAL, .any_calls = true,
                 .logs = "33 bytes are to go inline, the connection takes 32 at most",
                 .before = "operation 2 of 3: ");
    assert_int_equal(posted, 1);
    assert_int_equal(fake_posted_count(), 1);
    world_drop(&w);
}

#ifdef TEST_NATIVE_FLUSH
static void nothing_may_go_inline_beside_a_native_flush(void **state) {
    (void)state;
    fake_device()->native_flush = true;
    new_conn(20);
    MUST(rpma_batch_new(w.h.conn, 2, &w.h.batch));
    MUST(rpma_batch_send(w.h.batch, NULL, 0, 0, FLAGS, NULL));
    MUST(rpma_batch_flush(w.h.batch, w.h.remote, 8, 8, RPMA_FLUSH_TYPE_VISIBILITY, 1, NULL));
    EXPECT_ERROR(
        rpma_batch_flush(w.h.batch, w.h.remote, 8, 8, RPMA_FLUSH_TYPE_VISIBILITY, 1, NULL),
        RPMA_E_INVAL, "the batch is full", "the batch is full: it has room for 2 operations");
    fake_forget();
    MUST(rpma_batch_post(w.h.batch, NULL));
    assert_int_equal(fake_posted_count(), 2);
    assert_int_equal(fake_posted(0)->num_sge, 0);
    assert_int_equal(fake_posted(0)->inlined_bytes, 0);
    world_drop(&w);
}

// Together with a native flush nothing of it is taken, and the error is not that of a full
// queue, though it has the same number.
static void too_much_beside_a_native_flush_is_refused(void **state) {
    (void)state;
    uint32_t posted = 7;
    fake_device()->native_flush = true;
    new_conn(20);
    MUST(rpma_batch_new(w.h.conn, 3, &w.h.batch));
    const struct operation fits = operation(OPERATION_SEND, 32);
    const struct operation too_long = operation(OPERATION_WRITE, 33);
    MUST(operation_add(&fits, w.h.batch));
    MUST(rpma_batch_flush(w.h.batch, w.h.remote, 8, 8, RPMA_FLUSH_TYPE_VISIBILITY, 1, NULL));
    MUST(rpma_batch_post(w.h.batch, &posted));
    assert_memory_equal(fake_posted(0)->inlined, w.memory + 4, 32);
    MUST(operation_add(&too_long, w.h.batch));
    fake_forget();
    EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_PROVIDER,
                 "ibv_wr_complete() failed", "ibv_wr_complete()", ENOSPC, .any_calls = true,
                 .before = "operations 1 to 3 of 3: ",
                 .logs = "33 bytes are to go inline, the connection takes 32 at most");
    assert_int_equal(posted, 0);
    assert_int_equal(fake_posted_count(), 0);
    world_drop(&w);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(bytes_are_copied_while_they_are_posted),
        TEST(batch_copies_with_each_post),
        TEST(other_operations_ignore_the_flag),
        TEST(nothing_may_go_inline),
        TEST(full_queue_is_told_from_too_much),
        TEST(too_much_is_refused),
        TEST(too_much_in_a_batch_is_refused),
#ifdef TEST_NATIVE_FLUSH
        TEST(nothing_may_go_inline_beside_a_native_flush),
        TEST(too_much_beside_a_native_flush_is_refused),
#endif
    };
    return UNIT_RUN("inline", tests);
}
