// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// work_refused.c -- invalid values of every member of struct rpma_work and struct
// rpma_receive: each function rejects them if the type uses the member

#include "lists.h"
#include "operation.h"
#include "packed.h"

#include <stdio.h>

enum { SETS = 4, MAX_SGES = 2 };
#define KIND(name) (1U << RPMA_WORK_##name)
#define SENDS (KIND(SEND) | KIND(SEND_WITH_IMM))
#define TRANSFERS (KIND(READ) | KIND(WRITE) | KIND(WRITE_WITH_IMM))
#define LOCAL_KINDS (TRANSFERS | SENDS)
#define INLINE_KINDS (SENDS | KIND(WRITE) | KIND(WRITE_WITH_IMM))
#define SOLICITED_KINDS (SENDS | KIND(WRITE_WITH_IMM))
#define ATOMIC_KINDS (KIND(FETCH_ADD) | KIND(COMPARE_SWAP))
#define ALL (LOCAL_KINDS | ATOMIC_KINDS | KIND(ATOMIC_WRITE) | KIND(FLUSH))

// The offset of a member, and its size.
#define AT(member) \
    offsetof(struct rpma_work, member), sizeof(((struct rpma_work *)NULL)->member)
#define TYPE AT(type)
#define FLAGS AT(flags)
#define RESERVED0 AT(reserved0) // of a receive: reserved
#define RESERVED1 AT(reserved1)
#define REMOTE AT(remote)
#define REMOTE_OFFSET AT(remote_offset)
#define LOCAL_MR AT(local.mr)
#define LOCAL_OFFSET AT(local.offset)
#define LOCAL_LEN AT(local.len)
#define SGL AT(sgl)
#define NSGE AT(nsge)
#define FLUSH_TYPE AT(flush_type)
#define FLUSH_LEN AT(flush_len)

static struct rpma_sge good_list[3], offset_without_memory[2], bytes_without_memory[2],
    too_long[2];

static const struct wrong {
    unsigned kinds; // types that reject it for this reason
    struct {
        size_t at, size; // size 0: end
        uint64_t value;
    } set[SETS];
    const char *condition, *cause; // of the contract
    const char *logs;
    int code; // 0: RPMA_E_INVAL
} wrongs[] = {
// clang-format off
#define CONDITION(condition) condition, condition
#define TYPE_IS CONDITION("type is no RPMA_WORK_*"), "; possible: RPMA_WORK_*"
    {ALL, {{TYPE, 0}}, TYPE_IS},
    {ALL, {{TYPE, RPMA_WORK_COMPARE_SWAP + 1}}, TYPE_IS},
    {ALL, {{TYPE, INT32_MAX}}, TYPE_IS},
    {ALL, {{TYPE, UINT32_MAX}}, TYPE_IS},
#define FLAGS_ARE "flags without RPMA_F_COMPLETION_* || flags has an unknown bit"
#define WITHOUT_COMPLETION FLAGS_ARE, "flags without RPMA_F_COMPLETION_*"
#define UNKNOWN_BIT FLAGS_ARE, "flags has an unknown bit"
#define NO_INLINE                                                                         \
    "flags has RPMA_F_INLINE && type not in {RPMA_WORK_WRITE, RPMA_WORK_WRITE_WITH_IMM, " \
    "RPMA_WORK_SEND, RPMA_WORK_SEND_WITH_IMM}"
#define NO_SOLICITED                                                                        \
    "flags has RPMA_F_SOLICITED && type not in {RPMA_WORK_WRITE_WITH_IMM, RPMA_WORK_SEND, " \
    "RPMA_WORK_SEND_WITH_IMM}"
    {ALL, {{FLAGS, 0}}, WITHOUT_COMPLETION, "flags are 0x0; possible: "},
    {ALL, {{FLAGS, 2}}, WITHOUT_COMPLETION, "flags are 0x2; possible: "},
    {ALL, {{FLAGS, RPMA_F_INLINE}}, WITHOUT_COMPLETION, "flags are 0x8; possible: "},
    {ALL & ~SOLICITED_KINDS, {{FLAGS, 1 | RPMA_F_SOLICITED}}, CONDITION(NO_SOLICITED), "flags are 0x5; "},
    {ALL & ~SOLICITED_KINDS, {{FLAGS, 3 | RPMA_F_SOLICITED}}, CONDITION(NO_SOLICITED), "flags are 0x7; "},
    {ALL, {{FLAGS, RPMA_F_SOLICITED}}, WITHOUT_COMPLETION, "flags are 0x4; possible: "},
    {ALL, {{FLAGS, 1 << 4 | 1}}, UNKNOWN_BIT, "flags are 0x11; possible: "},
    {ALL, {{FLAGS, UINT32_MAX}}, UNKNOWN_BIT, "flags are 0xffffffff; possible: "},
    {ALL, {{FLAGS, 1U << 31 | 3}}, UNKNOWN_BIT, "flags are 0x80000003; possible: "},
    {ALL & ~INLINE_KINDS, {{FLAGS, 1 | RPMA_F_INLINE}}, CONDITION(NO_INLINE),
     "flags are 0x9; possible: only RPMA_F_COMPLETION_*"},
    {ALL & ~INLINE_KINDS, {{FLAGS, 3 | RPMA_F_INLINE}}, CONDITION(NO_INLINE), "flags are 0xb; possible: only"},
#define RESERVED_IS "reserved0 != 0 || reserved1 != 0"
    {ALL, {{RESERVED0, 1}}, RESERVED_IS, "reserved0 != 0", "work.reserved0 is 0x"},
    {ALL, {{RESERVED0, 1U << 31}}, RESERVED_IS, "reserved0 != 0", "work.reserved0 is 0x"},
    {ALL, {{RESERVED1, 1}}, RESERVED_IS, "reserved1 != 0", "work.reserved1 is 0x"},
    {ALL, {{RESERVED1, 1ULL << 63}}, RESERVED_IS, "reserved1 != 0",
     "work.reserved1 is 0x8000000000000000; possible: 0"},
#define TOO_MANY "nsge > max_sge of the connection"
    {LOCAL_KINDS, {{NSGE, MAX_SGES + 1}, {SGL, (uintptr_t)good_list}}, TOO_MANY, TOO_MANY,
     "nsge is 3; possible: 2 at most; raise it with rpma_conn_cfg_set_max_sge()"},
    {LOCAL_KINDS, {{NSGE, UINT32_MAX}, {SGL, (uintptr_t)good_list}}, TOO_MANY, TOO_MANY,
     "nsge is 4294967295; possible: 2 at most"},
    {LOCAL_KINDS, {{NSGE, 1}}, CONDITION("sgl == NULL && nsge != 0"), "sgl is NULL, nsge is 1"},
    {LOCAL_KINDS, {{NSGE, UINT32_MAX}}, CONDITION("sgl == NULL && nsge != 0"), "sgl is NULL"},
    {LOCAL_KINDS, {{SGL, (uintptr_t)good_list}}, CONDITION("sgl != NULL && nsge == 0"), "sgl != NULL && nsge == 0"},
#define LOCAL_IS "local.mr == NULL && (local.offset != 0 || local.len != 0)"
#define NO_REGION CONDITION(LOCAL_IS), "local.mr is NULL, offset "
#define NO_LOCAL                                                              \
    CONDITION("remote != NULL && local.mr == NULL && nsge == 0 (read, write)"), \
        "work.remote is given, and neither"
#define NO_REMOTE                                                                             \
    CONDITION("remote == NULL && (local.mr != NULL || nsge != 0 || remote_offset != 0) (read, " \
            "write)")
    {SENDS, {{LOCAL_MR, 0}}, NO_REGION},
    {SENDS, {{LOCAL_MR, 0}, {LOCAL_LEN, 0}}, NO_REGION},
    {SENDS, {{LOCAL_MR, 0}, {LOCAL_OFFSET, 0}}, NO_REGION},
    {TRANSFERS, {{LOCAL_MR, 0}, {LOCAL_LEN, 0}, {REMOTE, 0}, {REMOTE_OFFSET, 0}}, NO_REGION},
    {TRANSFERS, {{LOCAL_MR, 0}}, NO_LOCAL},
    {TRANSFERS, {{LOCAL_MR, 0}, {LOCAL_OFFSET, 0}, {LOCAL_LEN, 0}}, NO_LOCAL},
    {TRANSFERS, {{REMOTE, 0}}, NO_REMOTE, "work.remote == NULL"},
    {TRANSFERS, {{REMOTE, 0}, {NSGE, 1}, {SGL, (uintptr_t)good_list}}, NO_REMOTE, "work.remote == NULL"},
    {TRANSFERS, {{REMOTE, 0}, {LOCAL_MR, 0}, {LOCAL_OFFSET, 0}, {LOCAL_LEN, 0}}, NO_REMOTE,
     "work.remote is NULL, remote_offset 16; possible: 0"},
#define SGE_IS CONDITION("sgl[i].mr == NULL && (sgl[i].offset != 0 || sgl[i].len != 0)")
    {LOCAL_KINDS, {{NSGE, 2}, {SGL, (uintptr_t)offset_without_memory}}, SGE_IS,
     "sgl[1]: mr is NULL, offset 1, len 0; possible without memory: 0 and 0"},
    {LOCAL_KINDS, {{NSGE, 2}, {SGL, (uintptr_t)bytes_without_memory}}, SGE_IS,
     "sgl[1]: mr is NULL, offset 0, len 1; possible without memory: 0 and 0"},
    {LOCAL_KINDS, {{LOCAL_LEN, 1ULL << 32}}, CONDITION("local.len > UINT32_MAX"), "UINT32_MAX"},
    {LOCAL_KINDS, {{LOCAL_LEN, SIZE_MAX}}, CONDITION("local.len > UINT32_MAX"), "UINT32_MAX"},
    {LOCAL_KINDS, {{NSGE, 2}, {SGL, (uintptr_t)too_long}}, CONDITION("sum of sgl[i].len > UINT32_MAX"),
     "sgl[1] has len 4294967288, the elements before it have 8; possible: 4294967295 (UINT32_MAX)"},
#define ALIGNMENT CONDITION("remote_offset % 8 != 0 (atomic write)")
    {KIND(ATOMIC_WRITE), {{REMOTE_OFFSET, 1}}, ALIGNMENT, "remote_offset is 1; possible: multiples of 8"},
    {KIND(ATOMIC_WRITE), {{REMOTE_OFFSET, 4}}, ALIGNMENT, "remote_offset is 4; possible: multiples of 8"},
    {KIND(ATOMIC_WRITE), {{REMOTE_OFFSET, 15}}, ALIGNMENT, "remote_offset is 15; possible: multiples of 8"},
    {KIND(ATOMIC_WRITE) | KIND(FLUSH) | ATOMIC_KINDS, {{REMOTE, 0}},
     CONDITION("remote == NULL (atomic write, flush, remote atomic)"), "work.remote == NULL"},
#define FLUSH_TYPE_IS                                                                      \
    CONDITION("flush_type not in {RPMA_FLUSH_TYPE_PERSISTENT, RPMA_FLUSH_TYPE_VISIBILITY}")
    {KIND(FLUSH), {{FLUSH_TYPE, 2}}, FLUSH_TYPE_IS, "flush_type is 2; possible: RPMA_FLUSH_TYPE_*"},
    {KIND(FLUSH), {{FLUSH_TYPE, UINT32_MAX}}, FLUSH_TYPE_IS, "flush_type is -1; possible: RPMA_FLUSH_TYPE_"},
    {KIND(FLUSH), {{FLUSH_LEN, 1ULL << 32}}, CONDITION("flush_len > UINT32_MAX"),
     "flush_len is 4294967296; possible: 4294967295 (UINT32_MAX) at most"},
    {KIND(FLUSH), {{FLUSH_LEN, SIZE_MAX}}, CONDITION("flush_len > UINT32_MAX"), "flush_len is "},
#define OUT_OF_RANGE CONDITION("remote_offset >= size of the remote region (emulated flush)")
    {KIND(FLUSH), {{REMOTE_OFFSET, FIXTURE_REMOTE_SIZE}}, OUT_OF_RANGE,
     "remote_offset is 64, the remote region has 64 bytes; possible: less than that"},
    {KIND(FLUSH), {{REMOTE_OFFSET, SIZE_MAX - 7}}, OUT_OF_RANGE,
     "remote_offset is 18446744073709551608, the remote region has 64 bytes"},
    {KIND(FLUSH), {{REMOTE_OFFSET, SIZE_MAX}}, OUT_OF_RANGE, "remote_offset is 18446744073709551615"},
    {KIND(FLUSH), {{REMOTE_OFFSET, 1ULL << 32}}, OUT_OF_RANGE, "remote_offset is 4294967296"},
#define RESULT_IS "local.mr == NULL || local.len != 8 (remote atomic)"
#define RESULT_LENGTH RESULT_IS, "local.len != 8 (remote atomic)"
    {ATOMIC_KINDS, {{LOCAL_MR, 0}}, RESULT_IS, "local.mr == NULL", "work.local.mr == NULL"},
    {ATOMIC_KINDS, {{LOCAL_LEN, 0}}, RESULT_LENGTH, "local.len is 0; possible: 8"},
    {ATOMIC_KINDS, {{LOCAL_LEN, 7}}, RESULT_LENGTH, "local.len is 7; possible: 8"},
    {ATOMIC_KINDS, {{LOCAL_LEN, 9}}, RESULT_LENGTH, "local.len is 9; possible: 8"},
    {ATOMIC_KINDS, {{LOCAL_LEN, 8 + (1ULL << 32)}}, RESULT_LENGTH, "local.len is 4294967304;"},
#define PLACE_IS CONDITION("(address of the remote region + remote_offset) % 8 != 0 (remote atomic)")
    {ATOMIC_KINDS, {{REMOTE_OFFSET, 16}}, PLACE_IS,
     "remote_offset is 16, the remote address modulo 8 is 4; possible: 0"},
    {ATOMIC_KINDS, {{REMOTE_OFFSET, 21}}, PLACE_IS,
     "remote_offset is 21, the remote address modulo 8 is 1; possible: 0"},
    {ATOMIC_KINDS, {{REMOTE_OFFSET, 27}}, PLACE_IS,
     "remote_offset is 27, the remote address modulo 8 is 7; possible: 0"},
#define NO_LIST "sgl != NULL || nsge != 0 (remote atomic)"
    {ATOMIC_KINDS, {{NSGE, 1}, {SGL, (uintptr_t)good_list}}, NO_LIST, "nsge != 0 (remote atomic)",
     "a list is given, nsge is 1; possible: local"},
    {ATOMIC_KINDS, {{SGL, (uintptr_t)good_list}}, NO_LIST, "sgl != NULL", "nsge is 0; possible: local"},
    // clang-format on
};

static void make_lists(struct rpma_mr_local *mr) {
    for (int i = 0; i < 3; i++)
        good_list[i] = (struct rpma_sge){mr, 8 * (size_t)i, 8};
    offset_without_memory[0] = bytes_without_memory[0] = too_long[0] = good_list[0];
    too_long[1] = (struct rpma_sge){mr, 0, UINT32_MAX - 7};
    offset_without_memory[1] = (struct rpma_sge){NULL, 1, 0};
    bytes_without_memory[1] = (struct rpma_sge){NULL, 0, 1};
}

// ---- operations ----------------------------------------------------------------------------

static void invalidate(struct rpma_work *o, const struct wrong *wrong) {
    for (int i = 0; i < SETS && wrong->set[i].size; i++) {
        const uint32_t half = (uint32_t)wrong->set[i].value;
        const void *const value =
            wrong->set[i].size == sizeof(half) ? (const void *)&half : &wrong->set[i].value;
        memcpy((char *)o + wrong->set[i].at, value, wrong->set[i].size);
    }
}

// Creates a batch of three valid operations.
static void begin_case(void) {
    const struct rpma_work work = {.type = RPMA_WORK_SEND, .flags = 1, .op_context = &w};
    fixture_conn(&w, &(const struct shape){.max_sge = MAX_SGES});
    make_lists(w.h.mr);
    MUST(rpma_batch_new(w.h.conn, 4, &w.h.batch));
    for (int i = 0; i < 3; i++)
        MUST(rpma_batch_add(w.h.batch, &work));
}

static void expect_unchanged_batch(void) {
    uint32_t size = 0, posted = 0;
    MUST(rpma_batch_get_size(w.h.batch, &size, NULL));
    assert_int_equal(size, 3);
    MUST(rpma_batch_post(w.h.batch, &posted));
    EXPECT_CALLS("ibv_post_send");
    assert_int_equal(posted, 3);
    assert_int_equal(fake_posted_count(), 3);
    for (unsigned i = 0; i < 3; i++)
        assert_true(fake_posted(i)->wr_id == (uintptr_t)&w && fake_posted(i)->num_sge == 0);
}

// In an array, the operation in front of the invalid one is posted.
static void expect_refused(const struct wrong *wrong, const struct rpma_work *o) {
    const struct rpma_work other = {.type = RPMA_WORK_SEND, .flags = 1},
                           array[] = {other, *o, other};
    for (enum post_method method = 0; method < POST_METHODS; method++) {
        uint32_t posted = 77;
        const struct expected_error expected = {wrong->code ? wrong->code : RPMA_E_INVAL,
                                                wrong->condition,
                                                wrong->cause,
                                                .logs = wrong->logs,
                                                .before = operation_names[method].element,
                                                .any_calls = method == OPERATION_ARRAY};
        unit_begin();
        const int ret = method == OPERATION_POST    ? rpma_post(w.h.conn, o, 1, &posted)
                        : method == OPERATION_ARRAY ? rpma_post(w.h.conn, array, 3, &posted)
                        : method == OPERATION_ADD   ? rpma_batch_add(w.h.batch, o)
                                                    : rpma_batch_set(w.h.batch, 1, o);
        unit_expect_error(ret, operation_names[method].function, &expected, __FILE__, __LINE__);
        assert_int_equal(posted, method == OPERATION_POST    ? 0
                                 : method == OPERATION_ARRAY ? 1
                                                             : 77);
        assert_int_equal(fake_posted_count(), method == OPERATION_ARRAY);
    }
    expect_unchanged_batch();
}

// requests.c has invalid values of members that a type does not use.
TEST_THAT(invalid_members_are_rejected) {
    begin_case();
    struct rpma_mr_remote *words =
        packed_remote(FIXTURE_REMOTE_ADDR + 4, FIXTURE_REMOTE_SIZE, 78, FIXTURE_EVERY_USAGE, 1);
    for (size_t i = 0; i < LENGTH(wrongs); i++)
        for (unsigned kind = RPMA_WORK_READ; kind <= RPMA_WORK_COMPARE_SWAP; kind++) {
            const bool is_atomic = ATOMIC_KINDS >> kind & 1;
            struct rpma_work o[2] = {
                operation_of(&w, (enum rpma_work_type)kind)}; // followed by a zeroed operation
            if (is_atomic) {
                o->remote = words;
                o->remote_offset = 20;
            }
            invalidate(o, &wrongs[i]);
            if (wrongs[i].kinds >> kind & 1)
                expect_refused(&wrongs[i], o);
        }
    MUST(rpma_mr_remote_delete(&words));
}

// rdma-core 56, providers/siw/siw.c, and Linux 7.3, drivers/infiniband/sw/siw/siw.h: iWARP
// reads into one SGE (SIW_MAX_SGE_RD), even if a write may have more (SIW_MAX_SGE).
TEST_THAT(devices_limit_the_sges_of_reads) {
    const struct wrong wrong = {.condition = TOO_MANY,
                                .cause = "nsge > max_sge_rd of the device (read)",
                                .logs = "nsge is 2; possible: 1 at most"};
    fake_profile()->attr.max_sge_rd = 1;
    begin_case();
    for
        OPERATION_EACH_KIND(kind) {
            struct rpma_work o = operation_of_sges(&w, kind, 1);
            MUST(rpma_post(w.h.conn, &o, 1, NULL));
            o.nsge = 2;
            if (kind == RPMA_WORK_READ) {
                expect_refused(&wrong, &o);
                o.nsge = 3;
                unit_begin();
                assert_int_equal(rpma_post(w.h.conn, &o, 1, NULL), RPMA_E_INVAL);
                assert_null(
                    strstr(logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message, "set_max_sge"));
            } else {
                MUST(rpma_post(w.h.conn, &o, 1, NULL));
            }
        }
}

// ---- missing capabilities of the peer or the device ----------------------------------------

enum { BARE = -1 }; // a region from a descriptor, which has no byte for native usage
static const struct lack {
    unsigned kinds;
    enum rpma_flush_type flush_type;
    uint8_t usage;
    int native_usage; // the byte after the descriptor of the remote region
    const char *condition, *logs;
} lacks[] = {
// clang-format off
#define PERSISTENT RPMA_FLUSH_TYPE_PERSISTENT
#define VISIBILITY RPMA_FLUSH_TYPE_VISIBILITY
#define USAGE "type is not in the usage", "not registered with"
    {KIND(FLUSH), PERSISTENT, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, BARE, USAGE},
    {KIND(FLUSH), VISIBILITY, RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, BARE, USAGE},
    {KIND(FLUSH), VISIBILITY, RPMA_MR_USAGE_WRITE_DST, BARE, USAGE},
#define NOT_ALLOWED "direct write to PMem not enabled", "direct write to PMem"
    {KIND(FLUSH), PERSISTENT, FIXTURE_EVERY_USAGE, BARE, NOT_ALLOWED},
#define NOT_ADVERTISED "the remote region does not state RPMA_MR_USAGE_ATOMIC", \
    "does not advertise RPMA_MR_USAGE_ATOMIC for the remote region: register it with that usage"
    {ATOMIC_KINDS, 0, FIXTURE_EVERY_USAGE, BARE, NOT_ADVERTISED},
    {ATOMIC_KINDS, 0, FIXTURE_EVERY_USAGE, UINT8_MAX & ~PACKED_ATOMICS, NOT_ADVERTISED},
    {ATOMIC_KINDS, 0, FIXTURE_EVERY_USAGE, PACKED_ATOMICS,
     "the device has no remote atomics", "fake0 has no remote atomics (IBV_ATOMIC_NONE)"},
    // clang-format on
};

static void apply(bool direct_write) {
    MUST(rpma_peer_cfg_set_direct_write_to_pmem(w.h.pcfg, direct_write));
    MUST(rpma_conn_apply_remote_peer_cfg(w.h.conn, w.h.pcfg));
}

static void expect_unsupported(const struct lack *lack, const struct rpma_mr_remote *remote) {
    const struct wrong wrong = {
        0, {{0}}, lack->condition, lack->condition, lack->logs, .code = RPMA_E_NOSUPP};
    for (unsigned kind = RPMA_WORK_FLUSH; kind <= RPMA_WORK_COMPARE_SWAP; kind++) {
        struct rpma_work o = operation_of(&w, (enum rpma_work_type)kind);
        o.remote = remote;
        o.flush_type = lack->flush_type;
        if (!(lack->kinds >> kind & 1))
            continue;
        expect_refused(&wrong, &o);
        if (kind == RPMA_WORK_FLUSH)
            EXPECT_ERROR_OF("rpma_flush", operation_plain(&o, w.h.conn), RPMA_E_NOSUPP,
                            lack->condition, lack->condition, .logs = lack->logs);
    }
}

// The first flush has its own code path. The connection copies the applied configuration.
TEST_THAT(absent_capabilities_are_not_requested) {
    for (size_t i = 0; i < 2 * LENGTH(lacks); i++) {
        const struct lack *lack = &lacks[i / 2];
        struct rpma_mr_remote *remote = NULL;
        unsigned char desc[21];
        fixture_reset();
        fake_profile()->has_native_flush = i % 2;
        if (lack->native_usage == PACKED_ATOMICS)
            fake_profile()->attr.atomic_cap = IBV_ATOMIC_NONE;
        begin_case();
        fixture_descriptor(desc, FIXTURE_REMOTE_ADDR, FIXTURE_REMOTE_SIZE, 7, lack->usage);
        if (lack->native_usage == BARE)
            MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &remote));
        else
            remote = packed_remote(FIXTURE_REMOTE_ADDR, FIXTURE_REMOTE_SIZE, 7, lack->usage,
                                   (uint8_t)lack->native_usage);
        if (lack->kinds == KIND(FLUSH) && lack->usage == FIXTURE_EVERY_USAGE)
            apply(false);
        expect_unsupported(lack, remote);
        MUST(rpma_flush(w.h.conn, w.h.remote, 0, 8, VISIBILITY, 1, NULL));
        expect_unsupported(lack, remote);
        apply(true);
        MUST(rpma_peer_cfg_set_direct_write_to_pmem(w.h.pcfg, false));
        MUST(rpma_flush(w.h.conn, w.h.remote, 0, 8, PERSISTENT, 1, NULL));
        assert_int_equal(fake_count("ibv_query_device_ex"), 0); // queried earlier
        MUST(rpma_mr_remote_delete(&remote));
    }
}

// ---- receives ------------------------------------------------------------------------------

// Returns whether a receive has all members that are set.
static bool is_of_receive(const struct wrong *wrong) {
    bool is = wrong->kinds & KIND(SEND);
    for (int i = 0; i < SETS && wrong->set[i].size; i++) {
        const size_t at = wrong->set[i].at;
        is &=
            at == offsetof(struct rpma_work, reserved0) ||
            (at >= offsetof(struct rpma_work, local) && at <= offsetof(struct rpma_work, nsge));
    }
    return is;
}

static void reject_invalid_receives(const struct list_function *f) {
    make_lists(w.h.mr);
    for (size_t i = 0; i < LENGTH(wrongs); i++) {
        struct rpma_work o = {.local = list_sge(0)};
        const struct wrong *wrong = &wrongs[i];
        const char *condition = wrong->condition, *logs = wrong->logs;
        uint32_t posted = 77;
        if (!is_of_receive(wrong))
            continue;
        if (wrong->set[0].at == offsetof(struct rpma_work, reserved0)) {
            condition = "reserved != 0";
            logs = "receive.reserved is 0x";
        } else if (strcmp(condition, TOO_MANY) == 0) {
            condition = f->srq ? "nsge > max_sge of the shared receive queue" : TOO_MANY;
            logs = f->srq ? "possible: 5 at most; raise it with rpma_srq_cfg_set_max_sge()"
                          : "possible: 5 at most; raise it with rpma_conn_cfg_set_max_sge()";
        }
        invalidate(&o, wrong);
        if (o.nsge == 3)
            o.nsge = LIST_MAX + 1;
        const struct rpma_receive receive = {o.local, o.sgl, o.nsge, o.reserved0, NULL};
        EXPECT_ERROR_OF(f->name, f->receive(&receive, 1, &posted), RPMA_E_INVAL, condition,
                        condition, .logs = logs, .before = "receives[0]: ");
        assert_int_equal(posted, 0);
    }
}

TEST_THAT(invalid_members_of_receives_are_rejected) {
    list_for_each_receive(reject_invalid_receives);
}

// ---- sums of SGE lengths -------------------------------------------------------------------

static void check_sum(const struct list_function *f) {
    static const struct {
        size_t len[3];
        bool fits;
    } cases[] = {
        {{UINT32_MAX, 0, 0}, true},       {{0, UINT32_MAX, 0}, true},
        {{UINT32_MAX - 2, 1, 1}, true},   {{UINT32_MAX, 0, 1}, false},
        {{1, 0, UINT32_MAX}, false},      {{(size_t)1 << 31, (size_t)1 << 31, 0}, false},
        {{0, 0, SIZE_MAX}, false},        {{1, SIZE_MAX, 0}, false}, // overflows to 0
        {{SIZE_MAX, 1, 0}, false},        {{SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1, 0}, false},
        {{SIZE_MAX, SIZE_MAX, 2}, false},
    };
    fake_device()->any_range = true;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rpma_sge sgl[3];
        for (int k = 0; k < 3; k++)
            sgl[k] = (struct rpma_sge){list_regions[k], 0, cases[i].len[k]};
        if (cases[i].fits)
            MUST_OF(f->name, list_run(f, sgl, 3));
        else
            EXPECT_ERROR_OF(f->name, list_run(f, sgl, 3), RPMA_E_INVAL,
                            "sum of sgl[i].len > UINT32_MAX", "sum of sgl[i].len > UINT32_MAX",
                            .logs = "UINT32_MAX");
    }
}

TEST_THAT(sum_of_sge_lengths_is_limited_to_32_bits) {
    list_for_each(check_sum);
}
