// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// inline.c -- writes and sends whose bytes are copied while they are posted

#include "operation.h"

#define FLAGS (RPMA_F_COMPLETION_ALWAYS | RPMA_F_INLINE)

// Operations that can carry their data inline, of one piece and of several.
static const struct carrier {
    enum rpma_work_type kind;
    bool has_list;
} carriers[] = {
    {RPMA_WORK_WRITE, false}, {RPMA_WORK_WRITE_WITH_IMM, false},
    {RPMA_WORK_SEND, false},  {RPMA_WORK_SEND_WITH_IMM, false},
    {RPMA_WORK_WRITE, true},  {RPMA_WORK_WRITE_WITH_IMM, true},
    {RPMA_WORK_SEND, true},   {RPMA_WORK_SEND_WITH_IMM, true},
};

static void new_conn(uint32_t inline_size) {
    world_peer(&w);
    world_cfg(&w, &(const struct shape){.max_sge = 2});
    MUST(rpma_conn_cfg_set_inline_size(w.h.cfg, inline_size));
    MUST(rpma_conn_cfg_set_sq_size(w.h.cfg, 3 * LENGTH(carriers)));
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req));
    world_connect(&w, &(const struct shape){0});
    memcpy(w.memory, "0123456789abcdefghijklmnopqrstuvwxyz", 36);
}

// An operation on length bytes from offset 4 on, in one piece or in two halves.
static struct rpma_work operation(struct carrier carrier, size_t length) {
    static struct rpma_sge lists[4][2]; // of the operations that are held at once
    static unsigned number;
    struct rpma_sge *sgl = lists[number++ % LENGTH(lists)];
    struct rpma_work o = operation_of(&w, carrier.kind);
    sgl[0] = (struct rpma_sge){w.h.mr, 4, length / 2};
    sgl[1] = (struct rpma_sge){w.h.mr, 4 + length / 2, length - length / 2};
    o.local = (struct rpma_sge){w.h.mr, 4, length};
    o.sgl = carrier.has_list ? sgl : NULL;
    o.nsge = carrier.has_list ? 2 : 0;
    o.flags = FLAGS;
    return o;
}

// Posts by the plain function, which has no lists, or by rpma_post().
static int post(const struct rpma_work *o, bool by_plain) {
    return by_plain ? operation_plain(o, w.h.conn) : rpma_post(w.h.conn, o, 1, NULL);
}

// A batch holds addresses; each post copies the bytes there.
TEST_THAT(batch_copies_with_each_post) {
    new_conn(20);
    MUST(rpma_batch_new(w.h.conn, LENGTH(carriers), &w.h.batch));
    for (size_t i = 0; i < LENGTH(carriers); i++) {
        const struct rpma_work o = operation(carriers[i], 20);
        MUST(rpma_batch_add(w.h.batch, &o));
    }
    for (int round = 0; round < 2; round++) {
        memcpy(w.memory + 4, round ? "second second second" : "first. first. first.", 20);
        fake_forget();
        MUST(rpma_batch_post(w.h.batch, NULL));
        assert_int_equal(fake_posted_count(), LENGTH(carriers));
        for (unsigned i = 0; i < LENGTH(carriers); i++)
            assert_memory_equal(fake_posted(i)->inlined, w.memory + 4, 20);
    }
}

static void expect_failure(const struct rpma_work *o, bool by_plain, int error,
                           const char *logs) {
    EXPECT_ERROR_OF(by_plain ? operation_plain_name(o->type) : "rpma_post", post(o, by_plain),
                    RPMA_E_PROVIDER, "ibv_post_send() failed", "ibv_post_send()", error,
                    .logs = logs, .before = by_plain ? "" : "work[0]: ", .any_calls = true);
    assert_int_equal(fake_posted_count(), 0);
}

// A provider may return the same error for both (send_advice() of post/refused.cc).
TEST_THAT(full_queue_is_told_from_too_much) {
    new_conn(20);
    for (size_t i = 0; i < LENGTH(carriers); i++) {
        const struct rpma_work most = operation(carriers[i], 32);
        fake_fail_from("ibv_post_send", 1, ENOMEM);
        if (!carriers[i].has_list)
            expect_failure(&most, true, ENOMEM, "the send queue is full");
        EXPECT_ERROR(rpma_post(w.h.conn, &most, 1, NULL), RPMA_E_AGAIN,
                     "the send queue is full", "the send queue is full", .any_calls = true);
        fake_faults_off();
    }
}

// The fakes make room for two elements of 16 bytes, as rxe does: 33 are one too many. ENOMEM
// does not mean a full queue then.
TEST_THAT(too_much_is_refused) {
    static const char says[] = "33 bytes are to go inline, the connection takes 32 at most: "
                               "make it more with rpma_conn_cfg_set_inline_size()";
    static const int errors[] = {EINVAL, ENOMEM};
    for (size_t e = 0; e < LENGTH(errors); e++) {
        uint32_t posted = 7;
        world_anew();
        new_conn(20);
        fake_device()->inline_error = errors[e];
        for (size_t i = 0; i < LENGTH(carriers); i++)
            for (int by_plain = 0; by_plain <= !carriers[i].has_list; by_plain++) {
                const struct rpma_work most = operation(carriers[i], 32);
                const struct rpma_work o = operation(carriers[i], 33);
                MUST(post(&most, by_plain));
                expect_failure(&o, by_plain, errors[e], says);
            }
        MUST(rpma_batch_new(w.h.conn, 3, &w.h.batch));
        for (unsigned i = 0; i < 3; i++) {
            const struct rpma_work o = operation(carriers[0], i == 1 ? 33 : 8);
            MUST(rpma_batch_add(w.h.batch, &o));
        }
        EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_PROVIDER,
                     "ibv_post_send() failed", "ibv_post_send()", errors[e], .any_calls = true,
                     .logs = says, .before = "batch[1]: ");
        assert_int_equal(posted, 1);
        assert_int_equal(fake_posted_count(), 1);
    }
}

#ifdef TEST_NATIVE_FLUSH
// With a native flush in the list, none of it is taken, and the error is not reported as a full
// queue, though it has the same number.
TEST_THAT(too_much_beside_a_native_flush_is_refused) {
    uint32_t posted = 7;
    fake_device()->native_flush = true;
    new_conn(20);
    MUST(rpma_batch_new(w.h.conn, 3, &w.h.batch));
    const struct rpma_work fits = operation(carriers[2], 32);
    const struct rpma_work too_long = operation(carriers[0], 33);
    const struct rpma_work flush = operation_of(&w, RPMA_WORK_FLUSH);
    MUST(rpma_batch_add(w.h.batch, &fits));
    MUST(rpma_batch_add(w.h.batch, &flush));
    MUST(rpma_batch_post(w.h.batch, &posted));
    assert_memory_equal(fake_posted(0)->inlined, w.memory + 4, 32);
    MUST(rpma_batch_add(w.h.batch, &too_long));
    fake_forget();
    EXPECT_ERROR(rpma_batch_post(w.h.batch, &posted), RPMA_E_PROVIDER,
                 "ibv_wr_complete() failed", "ibv_wr_complete()", ENOSPC, .any_calls = true,
                 .before = "batch[0] to batch[2]: ",
                 .logs = "33 bytes are to go inline, the connection takes 32 at most");
    assert_int_equal(posted, 0);
    assert_int_equal(fake_posted_count(), 0);
}
#endif
