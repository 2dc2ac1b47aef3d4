// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rma.c -- read, write, write with immediate, atomic write and flush, as plain work requests

#include "world.h"

#include <arpa/inet.h>

#define SIGNALED IBV_SEND_SIGNALED

static struct world w;
static const struct shape outgoing = {.name = "outgoing"};
static void *const context = (void *)0x1234567890;
static const char eight[9] = "8 bytes!";

static void new_conn(void) {
    memset(&w.h, 0, sizeof(w.h));
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
static void flags_decide_on_completion(void **state) {
    (void)state;
    static const struct {
        int flags;
        unsigned signaled;
    } cases[] = {
        {RPMA_F_COMPLETION_ON_ERROR, 0},
        {RPMA_F_COMPLETION_ALWAYS, SIGNALED},
        {1 << 1, SIGNALED},
        {1 << 4, 0},
        {-1, SIGNALED},
    };
    new_conn();
    for (const struct operation *o = operations; o < operations + LENGTH(operations); o++)
        for (size_t i = 0; i < LENGTH(cases); i++) {
            MUST(o->run(0, cases[i].flags));
            expect_common(posted(), o->opcode, o->flags | cases[i].signaled);
        }
    world_drop(&w);
}

static void provider_failures_are_reported(void **state) {
    (void)state;
    static const int errors[] = {ENOMEM, EINVAL, EIO};
    new_conn();
    for (const struct operation *o = operations; o < operations + LENGTH(operations); o++)
        for (size_t i = 0; i < LENGTH(errors); i++) {
            fake_fail("ibv_post_send", 1, errors[i]);
            unit_begin();
            unit_expect_error(
                o->run(0, RPMA_F_COMPLETION_ALWAYS), o->name,
                &(struct expected_error){RPMA_E_PROVIDER, "ibv_post_send() failed",
                                         "ibv_post_send()", errors[i], "ibv_post_send"},
                __FILE__, __LINE__);
            fake_faults_off();
        }
    world_drop(&w);
}

// ---- one by one ----------------------------------------------------------------------------

static void ranges_are_handed_on(void **state) {
    (void)state;
    static const size_t lengths[] = {0, 1, 4096, UINT32_MAX};
    new_conn();
    for (size_t i = 0; i < LENGTH(lengths); i++)
        for (const struct operation *o = operations; o < operations + 3; o++) {
            MUST(o->run(lengths[i], RPMA_F_COMPLETION_ALWAYS));
            expect_ranges(posted(), 16, (uint32_t)lengths[i], 8);
        }
    world_drop(&w);
}

// Ranges are the provider's to check: an offset far out is handed on, modulo 2^64.
static void offsets_are_not_checked(void **state) {
    (void)state;
    new_conn();
    MUST(rpma_write(w.h.conn, w.h.remote, SIZE_MAX, w.h.mr, WORLD_MEMORY_SIZE + 1, 8, 1, NULL));
    assert_int_equal(posted()->remote_addr, WORLD_REMOTE_ADDR - 1);
    assert_int_equal(posted()->sge.addr, (uintptr_t)w.memory + WORLD_MEMORY_SIZE + 1);
    world_drop(&w);
}

static void nothing_is_transferred_without_regions(void **state) {
    (void)state;
    new_conn();
    for (const struct operation *o = operations + 3; o < operations + 6; o++) {
        MUST(o->run(0, RPMA_F_COMPLETION_ALWAYS));
        assert_int_equal(posted()->num_sge, 0);
        assert_int_equal(posted()->remote_addr, 0);
        assert_int_equal(posted()->rkey, 0);
    }
    world_drop(&w);
}

static void immediate_data_is_in_network_order(void **state) {
    (void)state;
    new_conn();
    MUST(write_with_imm(8, RPMA_F_COMPLETION_ALWAYS));
    assert_int_equal(ntohl(posted()->imm), 0x12345678);
    MUST(write_nothing_with_imm(0, RPMA_F_COMPLETION_ALWAYS));
    assert_int_equal(ntohl(posted()->imm), 0x12345678);
    world_drop(&w);
}

static void atomic_write_copies_its_bytes(void **state) {
    (void)state;
    new_conn();
    MUST(atomic_write(0, RPMA_F_COMPLETION_ALWAYS));
    assert_memory_equal(posted()->inlined, eight, 8);
    assert_int_equal(posted()->num_sge, 1);
    assert_int_equal(posted()->sge.length, 8);
    assert_int_equal(posted()->remote_addr, WORLD_REMOTE_ADDR + 8);
    assert_int_equal(posted()->rkey, WORLD_REMOTE_RKEY);
    assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 0);
    MUST(old_atomic_write(0, RPMA_F_COMPLETION_ALWAYS));
    expect_ranges(posted(), 16, 8, 8);
    world_drop(&w);
}

// The offset is right, the region is not: written all the same, with one warning.
static void atomic_write_warns_of_a_misaligned_region(void **state) {
    (void)state;
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
    world_drop(&w);
}

// ---- flush ---------------------------------------------------------------------------------

static struct rpma_mr_remote *region(uint64_t size, uint8_t usage) {
    unsigned char desc[21];
    struct rpma_mr_remote *remote = NULL;
    world_descriptor(desc, WORLD_REMOTE_ADDR, size, WORLD_REMOTE_RKEY, usage);
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &remote));
    return remote;
}

// A read behind the writes: of 8 bytes, or of what the region has left there.
static void flush_reads_inside_the_region(void **state) {
    (void)state;
    static const struct {
        uint64_t size, offset;
        uint32_t length;
    } cases[] = {
        {64, 0, 8}, {64, 56, 8}, {64, 57, 7}, {64, 63, 1},
        {1, 0, 1},  {7, 0, 7},   {8, 0, 8},   {UINT64_MAX, (uint64_t)1 << 40, 8},
    };
    new_conn();
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rpma_mr_remote *remote = region(cases[i].size, WORLD_EVERY_USAGE);
        MUST(rpma_flush(w.h.conn, remote, cases[i].offset, UINT32_MAX,
                        RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, context));
        expect_common(posted(), IBV_WR_RDMA_READ, SIGNALED);
        assert_int_equal(posted()->sge.length, cases[i].length);
        assert_int_equal(posted()->remote_addr, WORLD_REMOTE_ADDR + cases[i].offset);
        assert_int_equal(posted()->rkey, WORLD_REMOTE_RKEY);
        assert_int_not_equal(posted()->sge.lkey, fake_lkey(w.memory)); // the peer's own target
        MUST(rpma_mr_remote_delete(&remote));
    }
    world_drop(&w);
}

static void flush_needs_the_usage_of_the_region(void **state) {
    (void)state;
    static const struct {
        uint8_t usage;
        enum rpma_flush_type type;
    } cases[] = {
        {RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, RPMA_FLUSH_TYPE_VISIBILITY},
        {RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, RPMA_FLUSH_TYPE_PERSISTENT},
        {RPMA_MR_USAGE_WRITE_DST, RPMA_FLUSH_TYPE_VISIBILITY},
    };
    new_conn();
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rpma_mr_remote *remote = region(64, cases[i].usage);
        EXPECT_ERROR(rpma_flush(w.h.conn, remote, 0, 8, cases[i].type, 1, context),
                     RPMA_E_NOSUPP, "type is not in the usage", "not registered for this");
        MUST(rpma_mr_remote_delete(&remote));
    }
    world_drop(&w);
}

static void persistent_flush_needs_direct_write(void **state) {
    (void)state;
    new_conn(); // with direct write applied
    MUST(flush_persistent(8, 1));
    MUST(rpma_peer_cfg_set_direct_write_to_pmem(w.h.pcfg, false));
    MUST(flush_persistent(8, 1)); // the connection has a copy
    MUST(rpma_conn_apply_remote_peer_cfg(w.h.conn, w.h.pcfg));
    EXPECT_ERROR(rpma_flush(w.h.conn, w.h.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, 1, context),
                 RPMA_E_NOSUPP, "direct write to PMem not enabled", "direct write to PMem");
    MUST(flush_visibility(8, 1));
    world_drop(&w);
    memset(&w.h, 0, sizeof(w.h)); // and before anything was applied
    world_peer(&w);
    world_request(&w, &outgoing);
    MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
    EXPECT_ERROR(rpma_flush(w.h.conn, w.h.remote, 0, 8, RPMA_FLUSH_TYPE_PERSISTENT, 1, context),
                 RPMA_E_NOSUPP, "direct write to PMem not enabled", "direct write to PMem");
    world_drop(&w);
}

// An unknown type is an error of the program: found before what the other side lacks.
static void unknown_flush_type_comes_first(void **state) {
    (void)state;
    new_conn();
    struct rpma_mr_remote *remote = region(64, RPMA_MR_USAGE_WRITE_DST);
    EXPECT_ERROR(rpma_flush(w.h.conn, remote, 0, 8, (enum rpma_flush_type)7, 1, context),
                 RPMA_E_INVAL, "type not in",
                 "type not in {RPMA_FLUSH_TYPE_PERSISTENT, RPMA_FLUSH_TYPE_VISIBILITY}",
                 .logs = "type");
    MUST(rpma_mr_remote_delete(&remote));
    world_drop(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(flags_decide_on_completion),
        TEST(provider_failures_are_reported),
        TEST(ranges_are_handed_on),
        TEST(offsets_are_not_checked),
        TEST(nothing_is_transferred_without_regions),
        TEST(immediate_data_is_in_network_order),
        TEST(atomic_write_copies_its_bytes),
        TEST(atomic_write_warns_of_a_misaligned_region),
        TEST(flush_reads_inside_the_region),
        TEST(flush_needs_the_usage_of_the_region),
        TEST(persistent_flush_needs_direct_write),
        TEST(unknown_flush_type_comes_first),
    };
    return UNIT_RUN("rma", tests);
}
