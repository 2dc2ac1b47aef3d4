// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// list.c -- operations with memory lists: what they hand to the provider

#include "lists.h"

#include <arpa/inet.h>

// What the provider got beside the elements, which are returned.
static const struct fake_elements *handed_on(const struct list_function *f) {
    EXPECT_CALLS(f->call);
    const struct fake_call *call = fake_last(f->call);
    if (f->opcode < 0) {
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
    for (int nsge = 1; nsge <= LIST_MOST; nsge++) {
        list_must(f, sgl, nsge);
        const struct fake_elements *got = handed_on(f);
        assert_int_equal(got->num_sge, nsge);
        for (int i = 0; i < nsge; i++)
            expect_element(&got->sges[i], i);
    }
}

static void elements_are_handed_on(void **state) {
    (void)state;
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
            if (empty) // without bytes of a region, or of none
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

static void empty_elements_are_left_out(void **state) {
    (void)state;
    list_for_each(leave_out);
}

static void post_nothing(const struct list_function *f) {
    if (strcmp(f->name, "rpma_conn_req_recvv") == 0)
        return; // arguments.c: it needs an element
    list_must(f, NULL, 0);
    assert_int_equal(handed_on(f)->num_sge, 0);
    list_must(f, (struct rpma_sge[1]){{list_regions[0], 0, 8}}, 0);
    assert_int_equal(handed_on(f)->num_sge, 0);
}

static void lists_without_elements_move_nothing(void **state) {
    (void)state;
    list_for_each(post_nothing);
}

static void no_remote_region_is_needed_for_nothing(void **state) {
    (void)state;
    list_world_new(false, LIST_MOST);
    MUST(rpma_readv(list_world.h.conn, NULL, 0, NULL, 0, RPMA_F_COMPLETION_ALWAYS,
                    LIST_CONTEXT));
    MUST(rpma_writev(list_world.h.conn, NULL, 0, NULL, 0, RPMA_F_COMPLETION_ALWAYS,
                     LIST_CONTEXT));
    assert_int_equal(fake_last("ibv_post_send")->send.remote_addr, 0);
    assert_int_equal(fake_last("ibv_post_send")->send.rkey, 0);
    assert_int_equal(fake_last("ibv_post_send")->send.num_sge, 0);
    MUST(rpma_writev_with_imm(list_world.h.conn, NULL, 0, NULL, 0, RPMA_F_COMPLETION_ALWAYS,
                              LIST_IMM, LIST_CONTEXT));
    assert_int_equal(ntohl(fake_last("ibv_post_send")->send.imm), LIST_IMM);
    list_world_drop();
}

// The bits of the flags beside RPMA_F_COMPLETION_ALWAYS do not matter, as in rma.c.
static void completions_on_error_are_not_signalled(void **state) {
    (void)state;
    const int flags = RPMA_F_COMPLETION_ON_ERROR;
    list_world_new(false, LIST_MOST);
    const struct rpma_sge sgl[1] = {list_element(0)};
    unit_begin();
    assert_int_equal(
        rpma_readv(list_world.h.conn, sgl, 1, list_world.h.remote, 8, flags, LIST_CONTEXT), 0);
    assert_int_equal(
        rpma_writev(list_world.h.conn, list_world.h.remote, 8, sgl, 1, flags, LIST_CONTEXT), 0);
    assert_int_equal(rpma_writev_with_imm(list_world.h.conn, list_world.h.remote, 8, sgl, 1,
                                          flags, LIST_IMM, LIST_CONTEXT),
                     0);
    assert_int_equal(rpma_sendv(list_world.h.conn, sgl, 1, flags, LIST_CONTEXT), 0);
    assert_int_equal(
        rpma_sendv_with_imm(list_world.h.conn, sgl, 1, flags, LIST_IMM, LIST_CONTEXT), 0);
    assert_int_equal(fake_posted_count(), 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(fake_posted(i)->flags, 0);
    list_world_drop();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(elements_are_handed_on),
        TEST(empty_elements_are_left_out),
        TEST(lists_without_elements_move_nothing),
        TEST(no_remote_region_is_needed_for_nothing),
        TEST(completions_on_error_are_not_signalled),
    };
    return UNIT_RUN("list", tests);
}
