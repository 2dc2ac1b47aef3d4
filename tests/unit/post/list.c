// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// list.c -- operations and receives of several pieces: what they hand to the provider, and the
// sums and pieces that are refused

#include "lists.h"

#include <arpa/inet.h>

// Checks the request that the provider got, and returns its elements.
static const struct fake_elements *handed_on(const struct list_function *f) {
    EXPECT_CALLS(f->call);
    const struct fake_call *call = fake_last(f->call);
    if (!f->kind) {
        assert_int_equal(call->recv.wr_id, (uintptr_t)LIST_CONTEXT);
        return &call->recv.elements;
    }
    assert_int_equal(call->requests, 1);
    assert_int_equal(call->send.opcode, f->opcode);
    assert_int_equal(call->send.flags, IBV_SEND_SIGNALED);
    assert_int_equal(call->send.wr_id, (uintptr_t)LIST_CONTEXT);
    assert_int_equal(ntohl(call->send.imm), f->imm ? LIST_IMM : 0);
    assert_int_equal(call->send.remote_addr, f->remote ? WORLD_REMOTE_ADDR + 8 : 0);
    assert_int_equal(call->send.rkey, f->remote ? WORLD_REMOTE_RKEY : 0);
    return &call->send.elements;
}

static void expect_element(const struct ibv_sge *sge, int i) {
    assert_int_equal(sge->addr, (uintptr_t)list_memories[i % 3] + 10 + (size_t)i);
    assert_int_equal(sge->length, 20 + i);
    assert_int_equal(sge->lkey, fake_lkey(list_memories[i % 3]));
}

// ---- what is handed on ---------------------------------------------------------------------

static void hand_on(const struct list_function *f) {
    struct rpma_sge sgl[LIST_MOST];
    for (int i = 0; i < LIST_MOST; i++)
        sgl[i] = list_element(i);
    for (uint32_t nsge = 1; nsge <= LIST_MOST; nsge++) {
        list_must(f, sgl, nsge);
        const struct fake_elements *got = handed_on(f);
        assert_int_equal(got->num_sge, nsge);
        for (int i = 0; i < (int)nsge; i++)
            expect_element(&got->sges[i], i);
    }
}

TEST_THAT(elements_are_handed_on) {
    list_for_each(hand_on);
}

// The bits of pattern say which elements have no bytes.
static void leave_out(const struct list_function *f) {
    for (unsigned pattern = 0; pattern < 1 << LIST_MOST; pattern++) {
        struct rpma_sge sgl[LIST_MOST];
        int used = 0;
        for (int i = 0; i < LIST_MOST; i++) {
            const bool empty = pattern >> i & 1;
            sgl[i] = list_element(i);
            if (empty) // 0 bytes of a region, or of no region
                sgl[i] = i % 2 ? (struct rpma_sge){NULL, 0, 0}
                               : (struct rpma_sge){list_regions[0], SIZE_MAX, 0};
        }
        list_must(f, sgl, LIST_MOST);
        const struct fake_elements *got = handed_on(f);
        for (int i = 0; i < LIST_MOST; i++)
            if (!(pattern >> i & 1))
                expect_element(&got->sges[used++], i);
        assert_int_equal(got->num_sge, used);
    }
}

TEST_THAT(empty_elements_are_left_out) {
    list_for_each(leave_out);
}

static void take_one_piece(const struct list_function *f) {
    MUST_OF(f->name, list_run_local(f, list_element(1)));
    const struct fake_elements *got = handed_on(f);
    assert_int_equal(got->num_sge, 1);
    expect_element(&got->sge, 1);
    if (f->remote)
        return; // work.c has this case, also without the remote region
    MUST_OF(f->name, list_run_local(f, (struct rpma_sge){NULL, 0, 0}));
    assert_int_equal(handed_on(f)->num_sge, 0);
}

TEST_THAT(one_piece_or_none_needs_no_list) {
    list_for_each(take_one_piece);
}

// ---- what is refused; work_refused.c has the rest ----------------------------------------

static void refuse(const struct list_function *f, const struct rpma_sge *sgl, uint32_t nsge,
                   const char *condition, const char *logs) {
    EXPECT_ERROR_OF(f->name, list_run(f, sgl, nsge), RPMA_E_INVAL, condition, condition,
                    .logs = logs);
}

static void add_up(const struct list_function *f) {
    static const struct {
        size_t len[3];
        bool fits;
    } cases[] = {
        {{UINT32_MAX, 0, 0}, true},       {{0, UINT32_MAX, 0}, true},
        {{UINT32_MAX - 2, 1, 1}, true},   {{UINT32_MAX, 0, 1}, false},
        {{1, 0, UINT32_MAX}, false},      {{(size_t)1 << 31, (size_t)1 << 31, 0}, false},
        {{0, 0, SIZE_MAX}, false},        {{1, SIZE_MAX, 0}, false}, // 0 if the sum overflowed
        {{SIZE_MAX, 1, 0}, false},        {{SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1, 0}, false},
        {{SIZE_MAX, SIZE_MAX, 2}, false},
    };
    fake_device()->any_range = true;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rpma_sge sgl[3];
        for (int k = 0; k < 3; k++)
            sgl[k] = (struct rpma_sge){list_regions[k], 0, cases[i].len[k]};
        if (cases[i].fits)
            list_must(f, sgl, 3);
        else
            refuse(f, sgl, 3, "sum of sgl[i].len > UINT32_MAX", "UINT32_MAX");
    }
}

TEST_THAT(sums_fit_a_work_request) {
    list_for_each(add_up);
}

static void miss_region(const struct list_function *f) {
    for (int at = 0; at < LIST_MOST; at++)
        for (int with_offset = 0; with_offset < 2; with_offset++) {
            struct rpma_sge sgl[LIST_MOST];
            for (int i = 0; i < LIST_MOST; i++)
                sgl[i] = list_element(i);
            sgl[at] = (struct rpma_sge){NULL, (size_t)with_offset, 1 - (size_t)with_offset};
            refuse(f, sgl, LIST_MOST,
                   "sgl[i].mr == NULL && (sgl[i].offset != 0 || sgl[i].len != 0)",
                   "mr is NULL");
            if (at > 0)
                list_must(f, sgl, (uint32_t)at); // the others are valid
        }
}

TEST_THAT(elements_need_regions) {
    list_for_each(miss_region);
}
