// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// list.c -- operations with memory lists: what they hand to the provider, and the lists that
// are refused for their sums

#include "world.h"

#include <arpa/inet.h>
#include <stdio.h>

enum { MOST = 5, IMM = 0x12345678 };

static struct world w;
static void *const context = (void *)0x1234567890;
static unsigned char other_memory[2][256];
static struct rpma_mr_local *regions[3];
static const unsigned char *const memories[3] = {w.memory, other_memory[0], other_memory[1]};

static void new_world(bool with_srq, uint32_t max_sge) {
    const struct shape shape = {.srq = with_srq, .max_sge = max_sge};
    world_peer(&w);
    world_cfg(&w, &shape);
    MUST(rpma_conn_cfg_set_rq_size(w.h.cfg, 100)); // no fake takes a receive away
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req));
    world_connect(&w, &shape);
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, w.h.cfg, &w.h.req));
    regions[0] = w.h.mr;
    for (int i = 0; i < 2; i++)
        MUST(rpma_mr_reg(w.h.peer, other_memory[i], sizeof(other_memory[i]), WORLD_EVERY_USAGE,
                         &regions[1 + i]));
}

static void drop_world(void) {
    MUST(rpma_mr_dereg(&regions[1]));
    MUST(rpma_mr_dereg(&regions[2]));
    world_drop(&w);
}

// ---- the functions as one table ------------------------------------------------------------

#define FLAGS RPMA_F_COMPLETION_ALWAYS

static int readv_(const struct rpma_sge *sgl, int nsge) {
    return rpma_readv(w.h.conn, sgl, nsge, w.h.remote, 8, FLAGS, context);
}
static int writev_(const struct rpma_sge *sgl, int nsge) {
    return rpma_writev(w.h.conn, w.h.remote, 8, sgl, nsge, FLAGS, context);
}
static int writev_with_imm(const struct rpma_sge *sgl, int nsge) {
    return rpma_writev_with_imm(w.h.conn, w.h.remote, 8, sgl, nsge, FLAGS, IMM, context);
}
static int sendv(const struct rpma_sge *sgl, int nsge) {
    return rpma_sendv(w.h.conn, sgl, nsge, FLAGS, context);
}
static int sendv_with_imm(const struct rpma_sge *sgl, int nsge) {
    return rpma_sendv_with_imm(w.h.conn, sgl, nsge, FLAGS, IMM, context);
}
static int recvv(const struct rpma_sge *sgl, int nsge) {
    return rpma_recvv(w.h.conn, sgl, nsge, context);
}
static int conn_req_recvv(const struct rpma_sge *sgl, int nsge) {
    return rpma_conn_req_recvv(w.h.req, sgl, nsge, context);
}
static int srq_recvv(const struct rpma_sge *sgl, int nsge) {
    return rpma_srq_recvv(w.h.srq, sgl, nsge, context);
}

static const struct function {
    int (*run)(const struct rpma_sge *sgl, int nsge);
    const char *name, *call, *cause;
    int opcode; // of a send
    bool remote, imm, srq;
} functions[] = {
    {readv_, "rpma_readv", "ibv_post_send", "ibv_post_send()", IBV_WR_RDMA_READ,
     .remote = true},
    {writev_, "rpma_writev", "ibv_post_send", "ibv_post_send()", IBV_WR_RDMA_WRITE,
     .remote = true},
    {writev_with_imm, "rpma_writev_with_imm", "ibv_post_send", "ibv_post_send()",
     IBV_WR_RDMA_WRITE_WITH_IMM, .remote = true, .imm = true},
    {sendv, "rpma_sendv", "ibv_post_send", "ibv_post_send()", IBV_WR_SEND},
    {sendv_with_imm, "rpma_sendv_with_imm", "ibv_post_send", "ibv_post_send()",
     IBV_WR_SEND_WITH_IMM, .imm = true},
    {recvv, "rpma_recvv", "ibv_post_recv", "ibv_post_recv()", -1},
    {conn_req_recvv, "rpma_conn_req_recvv", "ibv_post_recv", "ibv_post_recv()", -1},
    {srq_recvv, "rpma_srq_recvv", "ibv_post_srq_recv", "ibv_post_srq_recv()", -1, .srq = true},
};

// Calls what for each function, in a world of its own.
static void for_each(void (*what)(const struct function *f)) {
    for (size_t i = 0; i < LENGTH(functions); i++) {
        fake_reset();
        new_world(functions[i].srq, MOST);
        what(&functions[i]);
        drop_world();
    }
}

// What the provider got beside the elements, which are returned.
static const struct fake_elements *handed_on(const struct function *f) {
    EXPECT_CALLS(f->call);
    const struct fake_call *call = fake_last(f->call);
    if (f->opcode < 0) {
        assert_int_equal(call->recv.wr_id, (uintptr_t)context);
        return &call->recv.elements;
    }
    assert_int_equal(call->requests, 1);
    assert_int_equal(call->send.opcode, f->opcode);
    assert_int_equal(call->send.flags, IBV_SEND_SIGNALED);
    assert_int_equal(call->send.wr_id, (uintptr_t)context);
    assert_int_equal(ntohl(call->send.imm), f->imm ? IMM : 0);
    assert_int_equal(call->send.remote_addr, f->remote ? WORLD_REMOTE_ADDR + 8 : 0);
    assert_int_equal(call->send.rkey, f->remote ? WORLD_REMOTE_RKEY : 0);
    return &call->send.elements;
}

// Element i: of region i % 3, at offset 10 + i, with 20 + i bytes.
static struct rpma_sge element(int i) {
    return (struct rpma_sge){regions[i % 3], 10 + (size_t)i, 20 + (size_t)i};
}

static void expect_element(const struct ibv_sge *sge, int i) {
    assert_int_equal(sge->addr, (uintptr_t)memories[i % 3] + 10 + (size_t)i);
    assert_int_equal(sge->length, 20 + i);
    assert_int_equal(sge->lkey, fake_lkey(memories[i % 3]));
}

static void must(const struct function *f, const struct rpma_sge *sgl, int nsge) {
    unit_begin();
    unit_must(f->run(sgl, nsge), f->name, __FILE__, __LINE__);
}

// ---- what is handed on ---------------------------------------------------------------------

static void hand_on(const struct function *f) {
    struct rpma_sge sgl[MOST];
    for (int i = 0; i < MOST; i++)
        sgl[i] = element(i);
    for (int nsge = 1; nsge <= MOST; nsge++) {
        must(f, sgl, nsge);
        const struct fake_elements *got = handed_on(f);
        assert_int_equal(got->num_sge, nsge);
        for (int i = 0; i < nsge; i++)
            expect_element(&got->sges[i], i);
    }
}

static void elements_are_handed_on(void **state) {
    (void)state;
    for_each(hand_on);
}

// The bits of pattern say which elements have no bytes.
static void leave_out(const struct function *f) {
    for (unsigned pattern = 0; pattern < 1 << MOST; pattern++) {
        struct rpma_sge sgl[MOST];
        int used = 0;
        for (int i = 0; i < MOST; i++) {
            const bool empty = pattern >> i & 1;
            sgl[i] = element(i);
            if (empty) // without bytes of a region, or of none
                sgl[i] = i % 2 ? (struct rpma_sge){NULL, 0, 0}
                               : (struct rpma_sge){regions[0], SIZE_MAX, 0};
        }
        must(f, sgl, MOST);
        const struct fake_elements *got = handed_on(f);
        for (int i = 0; i < MOST; i++)
            if (!(pattern >> i & 1))
                expect_element(&got->sges[used++], i);
        assert_int_equal(got->num_sge, used);
    }
}

static void empty_elements_are_left_out(void **state) {
    (void)state;
    for_each(leave_out);
}

static void post_nothing(const struct function *f) {
    if (strcmp(f->name, "rpma_conn_req_recvv") == 0)
        return; // arguments.c: it needs an element
    must(f, NULL, 0);
    assert_int_equal(handed_on(f)->num_sge, 0);
    must(f, (struct rpma_sge[1]){{regions[0], 0, 8}}, 0);
    assert_int_equal(handed_on(f)->num_sge, 0);
}

static void lists_without_elements_move_nothing(void **state) {
    (void)state;
    for_each(post_nothing);
}

static void no_remote_region_is_needed_for_nothing(void **state) {
    (void)state;
    new_world(false, MOST);
    MUST(rpma_readv(w.h.conn, NULL, 0, NULL, 0, FLAGS, context));
    MUST(rpma_writev(w.h.conn, NULL, 0, NULL, 0, FLAGS, context));
    assert_int_equal(fake_last("ibv_post_send")->send.remote_addr, 0);
    assert_int_equal(fake_last("ibv_post_send")->send.rkey, 0);
    assert_int_equal(fake_last("ibv_post_send")->send.num_sge, 0);
    MUST(rpma_writev_with_imm(w.h.conn, NULL, 0, NULL, 0, FLAGS, IMM, context));
    assert_int_equal(ntohl(fake_last("ibv_post_send")->send.imm), IMM);
    drop_world();
}

// The bits of the flags beside RPMA_F_COMPLETION_ALWAYS do not matter, as in rma.c.
static void completions_on_error_are_not_signalled(void **state) {
    (void)state;
    const int flags = RPMA_F_COMPLETION_ON_ERROR;
    new_world(false, MOST);
    const struct rpma_sge sgl[1] = {element(0)};
    unit_begin();
    assert_int_equal(rpma_readv(w.h.conn, sgl, 1, w.h.remote, 8, flags, context), 0);
    assert_int_equal(rpma_writev(w.h.conn, w.h.remote, 8, sgl, 1, flags, context), 0);
    assert_int_equal(rpma_writev_with_imm(w.h.conn, w.h.remote, 8, sgl, 1, flags, IMM, context),
                     0);
    assert_int_equal(rpma_sendv(w.h.conn, sgl, 1, flags, context), 0);
    assert_int_equal(rpma_sendv_with_imm(w.h.conn, sgl, 1, flags, IMM, context), 0);
    assert_int_equal(fake_posted_count(), 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(fake_posted(i)->flags, 0);
    drop_world();
}

// ---- what is refused -----------------------------------------------------------------------

static void refuse(const struct function *f, const struct rpma_sge *sgl, int nsge,
                   const char *condition, const char *logs) {
    unit_begin();
    unit_expect_error(
        f->run(sgl, nsge), f->name,
        &(struct expected_error){RPMA_E_INVAL, condition, condition, .logs = logs}, __FILE__,
        __LINE__);
}

static void add_up(const struct function *f) {
    static const struct {
        size_t len[3];
        bool fits;
    } cases[] = {
        {{UINT32_MAX, 0, 0}, true},       {{0, UINT32_MAX, 0}, true},
        {{UINT32_MAX - 2, 1, 1}, true},   {{UINT32_MAX, 0, 1}, false},
        {{1, 0, UINT32_MAX}, false},      {{(size_t)1 << 31, (size_t)1 << 31, 0}, false},
        {{0, 0, SIZE_MAX}, false},        {{1, SIZE_MAX, 0}, false}, // 0 if the sum ran over
        {{SIZE_MAX, 1, 0}, false},        {{SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1, 0}, false},
        {{SIZE_MAX, SIZE_MAX, 2}, false},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rpma_sge sgl[3];
        for (int k = 0; k < 3; k++)
            sgl[k] = (struct rpma_sge){regions[k], 0, cases[i].len[k]};
        if (cases[i].fits)
            must(f, sgl, 3);
        else
            refuse(f, sgl, 3, "sum of sgl[i].len > UINT32_MAX", "UINT32_MAX");
    }
}

static void sums_fit_a_work_request(void **state) {
    (void)state;
    for_each(add_up);
}

static void miss_region(const struct function *f) {
    for (int at = 0; at < MOST; at++)
        for (int with_offset = 0; with_offset < 2; with_offset++) {
            struct rpma_sge sgl[MOST];
            for (int i = 0; i < MOST; i++)
                sgl[i] = element(i);
            sgl[at] = (struct rpma_sge){NULL, (size_t)with_offset, 1 - (size_t)with_offset};
            refuse(f, sgl, MOST, "sgl[i].mr == NULL && (sgl[i].offset != 0 || sgl[i].len != 0)",
                   "mr == NULL");
            if (at > 0)
                must(f, sgl, at); // the others are valid
        }
}

static void elements_need_regions(void **state) {
    (void)state;
    for_each(miss_region);
}

// One more than what the configuration asked for, by the function that would give more.
static void have_too_many(const struct function *f) {
    struct rpma_sge sgl[MOST + 1];
    for (int i = 0; i <= MOST; i++)
        sgl[i] = element(i);
    must(f, sgl, MOST);
    refuse(f, sgl, MOST + 1,
           f->run == readv_
               ? "nsge < 0 || nsge > max_sge of the connection || nsge > max_sge_rd"
           : f->srq ? "nsge < 0 || nsge > max_sge of the shared receive queue"
                    : "nsge < 0 || nsge > max_sge of the connection",
           "nsge is 6, at most 5 elements are possible");
    assert_non_null(
        strstr(logged_line(RPMA_LOG_LEVEL_ERROR, 0)->message,
               f->srq ? "rpma_srq_cfg_set_max_sge()" : "rpma_conn_cfg_set_max_sge()"));
}

static void configurations_limit_the_elements(void **state) {
    (void)state;
    for_each(have_too_many);
}

static void fail_in_provider(const struct function *f) {
    char condition[64];
    struct rpma_sge sgl[2] = {element(0), element(1)};
    snprintf(condition, sizeof(condition), "%s failed", f->cause);
    fake_fail(f->call, 1, ENOMEM);
    unit_begin();
    unit_expect_error(
        f->run(sgl, 2), f->name,
        &(struct expected_error){RPMA_E_PROVIDER, condition, f->cause, ENOMEM, f->call},
        __FILE__, __LINE__);
    fake_faults_off();
}

static void provider_failures_are_reported(void **state) {
    (void)state;
    for_each(fail_in_provider);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(elements_are_handed_on),
        TEST(empty_elements_are_left_out),
        TEST(lists_without_elements_move_nothing),
        TEST(no_remote_region_is_needed_for_nothing),
        TEST(completions_on_error_are_not_signalled),
        TEST(sums_fit_a_work_request),
        TEST(elements_need_regions),
        TEST(configurations_limit_the_elements),
        TEST(provider_failures_are_reported),
    };
    return UNIT_RUN("list", tests);
}
