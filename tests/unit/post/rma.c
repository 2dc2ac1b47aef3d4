// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rma.c -- read, write, write with immediate, atomic write and flush: what they have in common

#include "world.h"

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

// What all operations have in common.
static void expect_common(const struct fake_post *post, int opcode, unsigned flags) {
    assert_int_equal(post->opcode, opcode);
    assert_int_equal(post->flags, flags);
    assert_int_equal(post->wr_id, (uintptr_t)context);
}

static void expect_ranges(const struct fake_post *post, uint64_t local_offset, uint32_t len,
                          uint64_t remote_offset) {
    assert_int_equal(post->num_sge, 1);
    assert_int_equal(post->sge.addr, (uintptr_t)w.memory + local_offset);
    assert_int_equal(post->sge.length, len);
    assert_int_equal(post->sge.lkey, fake_lkey(w.memory));
    assert_int_equal(post->remote_addr, WORLD_REMOTE_ADDR + remote_offset);
    assert_int_equal(post->rkey, WORLD_REMOTE_RKEY);
}

// ---- the operations as one table -----------------------------------------------------------

// Each with the local region at offset 16, the remote one at 8.
static int read_(size_t len, int flags) {
    return rpma_read(w.h.conn, w.h.mr, 16, w.h.remote, 8, len, flags, context);
}
static int write_(size_t len, int flags) {
    return rpma_write(w.h.conn, w.h.remote, 8, w.h.mr, 16, len, flags, context);
}
static int write_with_imm(size_t len, int flags) {
    return rpma_write_with_imm(w.h.conn, w.h.remote, 8, w.h.mr, 16, len, flags, 0x12345678,
                               context);
}
static int read_nothing(size_t len, int flags) {
    return rpma_read(w.h.conn, NULL, 0, NULL, 0, len, flags, context);
}
static int write_nothing(size_t len, int flags) {
    return rpma_write(w.h.conn, NULL, 0, NULL, 0, len, flags, context);
}
static int write_nothing_with_imm(size_t len, int flags) {
    return rpma_write_with_imm(w.h.conn, NULL, 0, NULL, 0, len, flags, 0x12345678, context);
}
static int atomic_write(size_t len, int flags) {
    (void)len;
    return rpma_atomic_write(w.h.conn, w.h.remote, 8, eight, flags, context);
}
static int old_atomic_write(size_t len, int flags) {
    (void)len;
    return rpma_write_atomic(w.h.conn, w.h.remote, 8, w.h.mr, 16, flags, context);
}
static int flush_visibility(size_t len, int flags) {
    return rpma_flush(w.h.conn, w.h.remote, 8, len, RPMA_FLUSH_TYPE_VISIBILITY, flags, context);
}
static int flush_persistent(size_t len, int flags) {
    return rpma_flush(w.h.conn, w.h.remote, 8, len, RPMA_FLUSH_TYPE_PERSISTENT, flags, context);
}

static const struct operation {
    int (*run)(size_t len, int flags);
    const char *name;
    int opcode;
    unsigned flags; // always set
} operations[] = {
    {read_, "rpma_read", IBV_WR_RDMA_READ, 0},
    {write_, "rpma_write", IBV_WR_RDMA_WRITE, 0},
    {write_with_imm, "rpma_write_with_imm", IBV_WR_RDMA_WRITE_WITH_IMM, 0},
    {read_nothing, "rpma_read", IBV_WR_RDMA_READ, 0},
    {write_nothing, "rpma_write", IBV_WR_RDMA_WRITE, 0},
    {write_nothing_with_imm, "rpma_write_with_imm", IBV_WR_RDMA_WRITE_WITH_IMM, 0},
    {atomic_write, "rpma_atomic_write", IBV_WR_RDMA_WRITE, IBV_SEND_INLINE | IBV_SEND_FENCE},
    {old_atomic_write, "rpma_write_atomic", IBV_WR_RDMA_WRITE, IBV_SEND_FENCE},
    {flush_visibility, "rpma_flush", IBV_WR_RDMA_READ, 0},
    {flush_persistent, "rpma_flush", IBV_WR_RDMA_READ, 0},
};

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
        {~RPMA_F_INLINE, SIGNALED}, // inline.c has what that does
    };
    new_conn();
    for (const struct operation *o = operations; o < operations + LENGTH(operations); o++)
        for (size_t i = 0; i < LENGTH(cases); i++) {
            MUST(o->run(0, cases[i].flags));
            expect_common(posted(), o->opcode, o->flags | cases[i].signaled);
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
            unit_begin();
            unit_expect_error(o->run(0, RPMA_F_COMPLETION_ALWAYS), o->name,
                              &(struct expected_error){
                                  RPMA_E_PROVIDER, "ibv_post_send() failed", "ibv_post_send()",
                                  cases[i].error, "ibv_post_send", .logs = cases[i].logs},
                              __FILE__, __LINE__);
            const bool nothing = o->run == read_nothing || o->run == write_nothing ||
                                 o->run == write_nothing_with_imm;
            const char *const key = nothing ? "rkey=0x0, " : "rkey=0x4d, "; // WORLD_REMOTE_RKEY
            const char *const keys = logged_line(RPMA_LOG_LEVEL_DEBUG, 0)->message;
            assert_memory_equal(keys, key, strlen(key));
            fake_faults_off();
        }
}

// ---- one by one ----------------------------------------------------------------------------

TEST_THAT(ranges_are_handed_on) {
    static const size_t lengths[] = {0, 1, 4096, UINT32_MAX};
    new_conn();
    fake_device()->any_range = true;
    for (size_t i = 0; i < LENGTH(lengths); i++)
        for (const struct operation *o = operations; o < operations + 3; o++) {
            MUST(o->run(lengths[i], RPMA_F_COMPLETION_ALWAYS));
            expect_ranges(posted(), 16, (uint32_t)lengths[i], 8);
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

TEST_THAT(nothing_is_transferred_without_regions) {
    new_conn();
    for (const struct operation *o = operations + 3; o < operations + 6; o++) {
        MUST(o->run(0, RPMA_F_COMPLETION_ALWAYS));
        assert_int_equal(posted()->num_sge, 0);
        assert_int_equal(posted()->remote_addr, 0);
        assert_int_equal(posted()->rkey, 0);
    }
}

TEST_THAT(immediate_data_is_in_network_order) {
    new_conn();
    MUST(write_with_imm(8, RPMA_F_COMPLETION_ALWAYS));
    assert_int_equal(ntohl(posted()->imm), 0x12345678);
    MUST(write_nothing_with_imm(0, RPMA_F_COMPLETION_ALWAYS));
    assert_int_equal(ntohl(posted()->imm), 0x12345678);
}

TEST_THAT(atomic_write_copies_its_bytes) {
    new_conn();
    MUST(atomic_write(0, RPMA_F_COMPLETION_ALWAYS));
    assert_memory_equal(posted()->inlined, eight, 8);
    assert_int_equal(posted()->sge.lkey, 0); // bytes of the program, which no region has
    assert_int_equal(posted()->num_sge, 1);
    assert_int_equal(posted()->sge.length, 8);
    assert_int_equal(posted()->remote_addr, WORLD_REMOTE_ADDR + 8);
    assert_int_equal(posted()->rkey, WORLD_REMOTE_RKEY);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
    MUST(old_atomic_write(0, RPMA_F_COMPLETION_ALWAYS));
    expect_ranges(posted(), 16, 8, 8);
}

// The offset is aligned, the region is not: the write is posted all the same, with one warning.
TEST_THAT(atomic_write_warns_of_a_misaligned_region) {
    unsigned char desc[21];
    new_conn();
    MUST(rpma_mr_remote_delete(&w.h.remote));
    world_descriptor(desc, WORLD_REMOTE_ADDR + 4, 64, WORLD_REMOTE_RKEY, WORLD_EVERY_USAGE);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w.h.remote));
    MUST(atomic_write(0, RPMA_F_COMPLETION_ALWAYS));
    expect_common(posted(), IBV_WR_RDMA_WRITE, IBV_SEND_INLINE | IBV_SEND_FENCE | SIGNALED);
    assert_int_equal(posted()->remote_addr, WORLD_REMOTE_ADDR + 12);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 1);
    assert_string_equal(logged_line(RPMA_LOG_LEVEL_WARNING, 0)->function, "rpma_atomic_write");
    MUST(atomic_write(0, RPMA_F_COMPLETION_ALWAYS));
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
    fake_fail("ibv_post_send", 1, ENOMEM);
    EXPECT_ERROR(rpma_atomic_write(w.h.conn, w.h.remote, 8, (char[8]){0},
                                   RPMA_F_COMPLETION_ALWAYS, context),
                 RPMA_E_PROVIDER, "ibv_post_send() failed", "ibv_post_send()", ENOMEM,
                 "ibv_post_send");
}
