// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// plain.c -- the functions that post one operation or one receive: what they hand to the
// device, and what they say when it refuses

#include "operation.h"

#include <arpa/inet.h>

#define SIGNALED IBV_SEND_SIGNALED

static const struct shape outgoing = {.name = "outgoing"};
static void *const context = (void *)0x1234567890;
static const char eight[9] = "8 bytes!";

static void new_conn(void) {
    world_conn(&w, &outgoing);
}

static const struct fake_post *posted(void) {
    EXPECT_CALLS("ibv_post_send");
    return &fake_last("ibv_post_send")->send;
}

// ---- the operations as one table -----------------------------------------------------------

enum { LOCAL = 1, REMOTE = 2, IMM = 4, BOTH = LOCAL | REMOTE };

static const struct operation {
    enum rpma_work_type kind;
    const char *name;
    int opcode;
    unsigned flags; // always set
    unsigned has;   // of these a request has the ranges and the immediate data
    enum rpma_flush_type flush_type;
    bool is_old; // rpma_write_atomic(), which no kind stands for
} operations[] = {
    {RPMA_WORK_READ, "rpma_read", IBV_WR_RDMA_READ, 0, BOTH},
    {RPMA_WORK_WRITE, "rpma_write", IBV_WR_RDMA_WRITE, 0, BOTH},
    {RPMA_WORK_WRITE_WITH_IMM, "rpma_write_with_imm", IBV_WR_RDMA_WRITE_WITH_IMM, 0,
     BOTH | IMM},
    {RPMA_WORK_SEND, "rpma_send", IBV_WR_SEND, 0, LOCAL},
    {RPMA_WORK_SEND_WITH_IMM, "rpma_send_with_imm", IBV_WR_SEND_WITH_IMM, 0, LOCAL | IMM},
    {RPMA_WORK_READ, "rpma_read", IBV_WR_RDMA_READ, 0, 0},
    {RPMA_WORK_WRITE, "rpma_write", IBV_WR_RDMA_WRITE, 0, 0},
    {RPMA_WORK_WRITE_WITH_IMM, "rpma_write_with_imm", IBV_WR_RDMA_WRITE_WITH_IMM, 0, IMM},
    {RPMA_WORK_SEND, "rpma_send", IBV_WR_SEND, 0, 0},
    {RPMA_WORK_SEND_WITH_IMM, "rpma_send_with_imm", IBV_WR_SEND_WITH_IMM, 0, IMM},
    {RPMA_WORK_ATOMIC_WRITE, "rpma_atomic_write", IBV_WR_RDMA_WRITE,
     IBV_SEND_INLINE | IBV_SEND_FENCE, REMOTE},
    {RPMA_WORK_ATOMIC_WRITE, "rpma_write_atomic", IBV_WR_RDMA_WRITE, IBV_SEND_FENCE, REMOTE,
     .is_old = true},
    {RPMA_WORK_FLUSH, "rpma_flush", IBV_WR_RDMA_READ, 0, REMOTE, RPMA_FLUSH_TYPE_VISIBILITY},
    {RPMA_WORK_FLUSH, "rpma_flush", IBV_WR_RDMA_READ, 0, REMOTE, RPMA_FLUSH_TYPE_PERSISTENT},
};

static int atomic_write(void) {
    return rpma_atomic_write(w.h.conn, w.h.remote, 8, eight, RPMA_F_COMPLETION_ALWAYS, context);
}

static int old_atomic_write(int flags) {
    return rpma_write_atomic(w.h.conn, w.h.remote, 8, w.h.mr, 16, flags, context);
}

// With the local region at offset 16 and the remote one at offset 8, or without them.
static int run(const struct operation *o, size_t len, int flags) {
    const bool local = o->has & LOCAL, remote = o->has & REMOTE;
    struct rpma_work work = {.type = o->kind,
                             .imm = 0x12345678,
                             .remote = remote ? w.h.remote : NULL,
                             .remote_offset = remote ? 8 : 0,
                             .local = {local ? w.h.mr : NULL, local ? 16 : 0, len},
                             .flush_type = o->flush_type,
                             .flush_len = len,
                             .flags = flags,
                             .op_context = context};
    memcpy(&work.value, eight, sizeof(work.value));
    return o->is_old ? old_atomic_write(flags) : operation_plain(&work, w.h.conn);
}

static void expect_slice(const struct ibv_sge *sge, uint64_t offset, size_t len) {
    assert_int_equal(sge->addr, (uintptr_t)w.memory + offset);
    assert_int_equal(sge->length, len);
    assert_int_equal(sge->lkey, fake_lkey(w.memory));
}

// What was posted by that operation with the local region at offset 16, the remote one at 8.
static const struct fake_post *expect_posted(const struct operation *o, unsigned signaled) {
    const struct fake_post *post = posted();
    assert_int_equal(post->opcode, o->opcode);
    assert_int_equal(post->flags, o->flags | signaled);
    assert_int_equal(post->wr_id, (uintptr_t)context);
    assert_int_equal(post->remote_addr, o->has & REMOTE ? WORLD_REMOTE_ADDR + 8 : 0);
    assert_int_equal(post->rkey, o->has & REMOTE ? WORLD_REMOTE_RKEY : 0);
    if (o->has & IMM)
        assert_int_equal(ntohl(post->imm), 0x12345678);
    if (!(o->has & BOTH))
        assert_int_equal(post->num_sge, 0);
    return post;
}

// Success is signalled only when asked for; other bits of the flags do not matter.
TEST_THAT(flags_decide_on_completion) {
    static const struct {
        int flags;
        unsigned signaled;
    } cases[] = {
        {RPMA_F_COMPLETION_ON_ERROR, 0},
        {RPMA_F_COMPLETION_ALWAYS, SIGNALED},
        {1 << 1, SIGNALED},
        {1 << 4, 0},
        {~(RPMA_F_INLINE | RPMA_F_SOLICITED), SIGNALED}, // see inline.c, atomic.c
    };
    new_conn();
    for (const struct operation *o = operations; o < operations + LENGTH(operations); o++)
        for (size_t i = 0; i < LENGTH(cases); i++) {
            MUST(run(o, 0, cases[i].flags));
            expect_posted(o, cases[i].signaled);
        }
}

static const size_t lengths[] = {0, 1, 4096, UINT32_MAX};

TEST_THAT(ranges_are_handed_on) {
    new_conn();
    fake_device()->any_range = true;
    for (const struct operation *o = operations; o < operations + LENGTH(operations); o++)
        for (size_t i = 0; o->has & LOCAL && i < LENGTH(lengths); i++) {
            MUST(run(o, lengths[i], RPMA_F_COMPLETION_ALWAYS));
            const struct fake_post *post = expect_posted(o, SIGNALED);
            assert_int_equal(post->num_sge, 1);
            expect_slice(&post->sge, 16, lengths[i]);
        }
}

TEST_THAT(provider_failures_are_reported) {
    // Values other than error numbers that providers return, in rdma-core 44: c4iw_post_send()
    // of cxgb4 a negated error number, mthca_tavor_post_send() of mthca -1 whatever the cause.
    static const struct {
        int returned, error;
        const char *logs;
    } cases[] = {{ENOMEM, ENOMEM, "the send queue is full"},
                 {EINVAL, EINVAL, NULL},
                 {-ENOMEM, ENOMEM, "the send queue is full"},
                 {-1, 0, "gives no reason"}};
    new_conn();
    for (const struct operation *o = operations; o < operations + LENGTH(operations); o++)
        for (size_t i = 0; i < LENGTH(cases); i++) {
            fake_fail("ibv_post_send", 1, cases[i].returned);
            EXPECT_ERROR_OF(o->name, run(o, 0, RPMA_F_COMPLETION_ALWAYS), RPMA_E_PROVIDER,
                            "ibv_post_send() failed", "ibv_post_send()", cases[i].error,
                            "ibv_post_send", .logs = cases[i].logs);
            // WORLD_REMOTE_RKEY
            const char *const key = o->has & REMOTE ? "rkey=0x4d, lkey=" : "rkey=0x0, lkey=";
            const char *const keys = logged_line(RPMA_LOG_LEVEL_DEBUG, 0)->message;
            assert_memory_equal(keys, key, strlen(key));
            fake_faults_off();
        }
}

// The provider checks ranges: an offset far beyond the region is passed on, modulo 2^64.
TEST_THAT(offsets_are_not_checked) {
    new_conn();
    fake_device()->any_range = true;
    MUST(rpma_write(w.h.conn, w.h.remote, SIZE_MAX, w.h.mr, WORLD_MEMORY_SIZE + 1, 8, 1, NULL));
    assert_int_equal(posted()->remote_addr, WORLD_REMOTE_ADDR - 1);
    assert_int_equal(posted()->sge.addr, (uintptr_t)w.memory + WORLD_MEMORY_SIZE + 1);
}

TEST_THAT(atomic_write_copies_its_bytes) {
    new_conn();
    MUST(atomic_write());
    assert_memory_equal(posted()->inlined, eight, 8);
    assert_int_equal(posted()->sge.lkey, 0); // bytes of the program, which no region has
    assert_int_equal(posted()->num_sge, 1);
    assert_int_equal(posted()->sge.length, 8);
    assert_int_equal(posted()->remote_addr, WORLD_REMOTE_ADDR + 8);
    assert_int_equal(posted()->rkey, WORLD_REMOTE_RKEY);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
    MUST(old_atomic_write(RPMA_F_COMPLETION_ALWAYS));
    expect_slice(&posted()->sge, 16, 8);
}

// The offset is aligned, the region is not: the write is posted all the same, with one warning,
// and never as a native one.
static void expect_warning(bool native) {
    unsigned char desc[21];
    world_anew();
    fake_device()->native_flush = fake_device()->native_atomic_write = native;
    new_conn();
    MUST(rpma_mr_remote_delete(&w.h.remote));
    world_descriptor(desc, WORLD_REMOTE_ADDR + 4, 64, WORLD_REMOTE_RKEY, WORLD_EVERY_USAGE);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w.h.remote));
    MUST(atomic_write());
    assert_int_equal(posted()->opcode, IBV_WR_RDMA_WRITE);
    assert_int_equal(posted()->flags, IBV_SEND_INLINE | IBV_SEND_FENCE | SIGNALED);
    assert_int_equal(posted()->remote_addr, WORLD_REMOTE_ADDR + 12);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 1);
    assert_string_equal(logged_line(RPMA_LOG_LEVEL_WARNING, 0)->function, "rpma_atomic_write");
    MUST(atomic_write());
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
    fake_fail("ibv_post_send", 1, ENOMEM);
    EXPECT_ERROR(rpma_atomic_write(w.h.conn, w.h.remote, 8, (char[8]){0},
                                   RPMA_F_COMPLETION_ALWAYS, context),
                 RPMA_E_PROVIDER, "ibv_post_send() failed", "ibv_post_send()", ENOMEM,
                 "ibv_post_send");
}

TEST_THAT(atomic_write_warns_of_a_misaligned_region) {
    expect_warning(false);
    expect_warning(true);
}

// ---- receives ------------------------------------------------------------------------------

static int recv_(struct rpma_mr_local *mr, size_t offset, size_t len) {
    return rpma_recv(w.h.conn, mr, offset, len, context);
}
static int srq_recv(struct rpma_mr_local *mr, size_t offset, size_t len) {
    return rpma_srq_recv(w.h.srq, mr, offset, len, context);
}

TEST_THAT(receives_take_a_slice_or_nothing) {
    static const struct {
        int (*run)(struct rpma_mr_local *mr, size_t offset, size_t len);
        const char *name, *call, *cause, *logs;
    } receives[] = {
        {recv_, "rpma_recv", "ibv_post_recv", "ibv_post_recv()",
         "the receive queue is full, it holds "},
        {srq_recv, "rpma_srq_recv", "ibv_post_srq_recv", "ibv_post_srq_recv()",
         "rpma_srq_cfg_set_rq_size()"},
    };
    fake_device()->any_range = true;
    for (size_t r = 0; r < LENGTH(receives); r++) {
        world_conn(&w, &(const struct shape){.srq = r == 1});
        for (size_t i = 0; i < LENGTH(lengths); i++) {
            MUST(receives[r].run(w.h.mr, 24, lengths[i]));
            EXPECT_CALLS(receives[r].call);
            const struct fake_call *call = fake_last(receives[r].call);
            assert_int_equal(call->recv.wr_id, (uintptr_t)context);
            assert_int_equal(call->recv.num_sge, 1);
            expect_slice(&call->recv.sge, 24, lengths[i]);
        }
        MUST(receives[r].run(NULL, 0, 0));
        assert_int_equal(fake_last(receives[r].call)->recv.num_sge, 0);
        for (int empty = 0; empty < 2; empty++) {
            fake_fail(receives[r].call, 1, ENOMEM);
            EXPECT_ERROR_OF(receives[r].name,
                            receives[r].run(empty ? NULL : w.h.mr, 0, empty ? 0 : 8),
                            RPMA_E_PROVIDER, receives[r].cause, receives[r].cause, ENOMEM,
                            receives[r].call, .logs = receives[r].logs);
            fake_faults_off();
        }
        // The provider decides: a queue pair with a shared queue takes no receive of its own.
        if (w.h.srq)
            EXPECT_ERROR(rpma_recv(w.h.conn, w.h.mr, 0, 8, context), RPMA_E_PROVIDER,
                         "ibv_post_recv() failed", "ibv_post_recv()", EINVAL, "ibv_post_recv");
    }
}
