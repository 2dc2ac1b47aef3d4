// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// message.c -- send, send with immediate, and the receives of connections and shared queues

#include "world.h"

#include <arpa/inet.h>

static void *const context = (void *)0x1234567890;

static void new_conn(bool with_srq) {
    const struct shape shape = {.srq = with_srq};
    world_conn(&w, &shape);
}

static void expect_sge(const struct ibv_sge *sge, uint64_t offset, uint32_t len) {
    assert_int_equal(sge->addr, (uintptr_t)w.memory + offset);
    assert_int_equal(sge->length, len);
    assert_int_equal(sge->lkey, fake_lkey(w.memory));
}

// ---- send ----------------------------------------------------------------------------------

static int send_(const struct rpma_mr_local *mr, size_t offset, size_t len, int flags) {
    return rpma_send(w.h.conn, mr, offset, len, flags, context);
}
static int send_with_imm(const struct rpma_mr_local *mr, size_t offset, size_t len, int flags) {
    return rpma_send_with_imm(w.h.conn, mr, offset, len, flags, 0x12345678, context);
}

static const struct {
    int (*run)(const struct rpma_mr_local *mr, size_t offset, size_t len, int flags);
    const char *name;
    int opcode;
    uint32_t imm;
} sends[] = {
    {send_, "rpma_send", IBV_WR_SEND, 0},
    {send_with_imm, "rpma_send_with_imm", IBV_WR_SEND_WITH_IMM, 0x12345678},
};

TEST_THAT(send_posts_a_slice) {
    static const size_t lengths[] = {0, 1, 4096, UINT32_MAX};
    new_conn(false);
    fake_device()->any_range = true;
    for (size_t s = 0; s < LENGTH(sends); s++)
        for (size_t i = 0; i < LENGTH(lengths); i++) {
            MUST(sends[s].run(w.h.mr, 24, lengths[i], RPMA_F_COMPLETION_ALWAYS));
            EXPECT_CALLS("ibv_post_send");
            const struct fake_post *post = &fake_last("ibv_post_send")->send;
            assert_int_equal(post->opcode, sends[s].opcode);
            assert_int_equal(post->flags, IBV_SEND_SIGNALED);
            assert_int_equal(post->wr_id, (uintptr_t)context);
            assert_int_equal(ntohl(post->imm), sends[s].imm);
            assert_int_equal(post->num_sge, 1);
            expect_sge(&post->sge, 24, (uint32_t)lengths[i]);
        }
}

TEST_THAT(send_without_region_sends_nothing) {
    new_conn(false);
    for (size_t s = 0; s < LENGTH(sends); s++) {
        MUST(sends[s].run(NULL, 0, 0, RPMA_F_COMPLETION_ON_ERROR));
        const struct fake_post *post = &fake_last("ibv_post_send")->send;
        assert_int_equal(post->opcode, sends[s].opcode);
        assert_int_equal(post->flags, 0);
        assert_int_equal(post->num_sge, 0);
        assert_int_equal(ntohl(post->imm), sends[s].imm);
    }
}

TEST_THAT(send_failures_are_reported) {
    new_conn(false);
    for (size_t s = 0; s < LENGTH(sends); s++) {
        fake_fail("ibv_post_send", 1, ENOMEM);
        unit_begin();
        unit_expect_error(sends[s].run(w.h.mr, 0, 8, 1), sends[s].name,
                          &(struct expected_error){RPMA_E_PROVIDER, "ibv_post_send() failed",
                                                   "ibv_post_send()", ENOMEM, "ibv_post_send",
                                                   .logs = "send queue is full"},
                          __FILE__, __LINE__);
        assert_non_null(strstr(logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message, "send_flags=0)"));
        const struct logged_line *keys = logged_line(RPMA_LOG_LEVEL_DEBUG, 0);
        assert_memory_equal(keys->message, "rkey=0x0, lkey=0x", 17);
        fake_faults_off();
    }
}

// ---- receive -------------------------------------------------------------------------------

static int recv_(struct rpma_mr_local *mr, size_t offset, size_t len) {
    return rpma_recv(w.h.conn, mr, offset, len, context);
}
static int srq_recv(struct rpma_mr_local *mr, size_t offset, size_t len) {
    return rpma_srq_recv(w.h.srq, mr, offset, len, context);
}

static const struct {
    int (*run)(struct rpma_mr_local *mr, size_t offset, size_t len);
    const char *name, *call, *cause;
    bool srq;
} receives[] = {
    {recv_, "rpma_recv", "ibv_post_recv", "ibv_post_recv()", false},
    {srq_recv, "rpma_srq_recv", "ibv_post_srq_recv", "ibv_post_srq_recv()", true},
};

TEST_THAT(recv_posts_a_slice_or_nothing) {
    static const size_t lengths[] = {0, 1, 4096, UINT32_MAX};
    fake_device()->any_range = true;
    for (size_t r = 0; r < LENGTH(receives); r++) {
        new_conn(receives[r].srq);
        for (size_t i = 0; i < LENGTH(lengths); i++) {
            MUST(receives[r].run(w.h.mr, 24, lengths[i]));
            EXPECT_CALLS(receives[r].call);
            const struct fake_call *call = fake_last(receives[r].call);
            assert_int_equal(call->recv.wr_id, (uintptr_t)context);
            assert_int_equal(call->recv.num_sge, 1);
            expect_sge(&call->recv.sge, 24, (uint32_t)lengths[i]);
        }
        MUST(receives[r].run(NULL, 0, 0));
        assert_int_equal(fake_last(receives[r].call)->recv.num_sge, 0);
        world_drop(&w);
    }
}

TEST_THAT(recv_failures_are_reported) {
    for (size_t r = 0; r < LENGTH(receives); r++) {
        new_conn(receives[r].srq);
        fake_fail(receives[r].call, 1, ENOMEM);
        unit_begin();
        const struct expected_error expected = {RPMA_E_PROVIDER, receives[r].cause,
                                                receives[r].cause, ENOMEM, receives[r].call};
        unit_expect_error(receives[r].run(w.h.mr, 0, 8), receives[r].name, &expected, __FILE__,
                          __LINE__);
        fake_faults_off();
        world_drop(&w);
    }
}

// A post without a buffer fails like any other.
TEST_THAT(empty_posts_fail_with_the_provider) {
    new_conn(false);
    fake_fail("ibv_post_send", 1, ENOMEM);
    EXPECT_ERROR(rpma_send(w.h.conn, NULL, 0, 0, RPMA_F_COMPLETION_ALWAYS, context),
                 RPMA_E_PROVIDER, "ibv_post_send() failed", "ibv_post_send()", ENOMEM,
                 "ibv_post_send");
    fake_faults_off();
    fake_fail("ibv_post_recv", 1, ENOMEM);
    EXPECT_ERROR(rpma_recv(w.h.conn, NULL, 0, 0, context), RPMA_E_PROVIDER,
                 "ibv_post_recv() failed", "ibv_post_recv()", ENOMEM, "ibv_post_recv",
                 .logs = "the receive queue is full, it holds ");
}

// The provider decides: a queue pair with a shared queue takes no receive of its own.
TEST_THAT(recv_is_refused_with_a_shared_queue) {
    new_conn(true);
    EXPECT_ERROR(rpma_recv(w.h.conn, w.h.mr, 0, 8, context), RPMA_E_PROVIDER,
                 "ibv_post_recv() failed", "ibv_post_recv()", EINVAL, "ibv_post_recv");
}
