// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// legacy.c -- completions as the releases before 0.12 had them, each at its version node

#include "world.h"

#include <arpa/inet.h>
#include <dlfcn.h>

enum { WC_FLUSH = 8, WC_ATOMIC_WRITE = 9 }; // younger than some headers

static struct world w;
static struct rpma_cq *cq;
static struct ibv_cq *queue;

typedef int get_from_conn(struct rpma_conn *conn, struct rpma_completion *cmpl);
typedef int get_from_cq(struct rpma_cq *cq, struct rpma_completion *cmpl);
static get_from_conn *conn_get_0_9, *conn_get_0_10;
static get_from_cq *cq_get_0_10;

static int by_cq(struct rpma_completion *cmpl) {
    return rpma_cq_get_completion(cq, cmpl);
}
static int by_cq_0_10(struct rpma_completion *cmpl) {
    return cq_get_0_10(cq, cmpl);
}
static int by_conn_0_10(struct rpma_completion *cmpl) {
    return conn_get_0_10(w.h.conn, cmpl);
}
static int by_conn_0_9(struct rpma_completion *cmpl) {
    return conn_get_0_9(w.h.conn, cmpl);
}

static const struct way {
    int (*get)(struct rpma_completion *cmpl);
    const char *name;
    bool old; // 24 bytes; checks the kind first
} ways[] = {
    {by_cq, "rpma_cq_get_completion", false},
    {by_cq_0_10, "rpma_cq_get_completion", false},
    {by_conn_0_10, "rpma_conn_completion_get", false},
    {by_conn_0_9, "rpma_conn_completion_get", true},
};

static void new_conn(void) {
    const struct shape shape = {.name = "outgoing"};
    world_conn(&w, &shape);
    cq = world_cq(&w);
    queue = world_qp(&w)->send_cq;
}

static void complete(int opcode, enum ibv_wc_status status, unsigned flags) {
    const struct ibv_wc wc = {.wr_id = 0x1122334455667788u,
                              .status = status,
                              .opcode = (enum ibv_wc_opcode)opcode,
                              .byte_len = 77,
                              .imm_data = htonl(0xaabbccdd),
                              .wc_flags = flags};
    fake_complete(queue, &wc);
}

static void nodes_have_their_own_functions(void **state) {
    (void)state;
    assert_non_null(conn_get_0_9);
    assert_non_null(conn_get_0_10);
    assert_non_null(cq_get_0_10);
    assert_ptr_not_equal((void *)conn_get_0_9, (void *)conn_get_0_10);
}

static void kinds_are_mapped(void **state) {
    (void)state;
    static const struct {
        int opcode, op;
        bool not_in_0_9;
    } cases[] = {
        {IBV_WC_RDMA_READ, RPMA_OP_READ, false},
        {IBV_WC_RDMA_WRITE, RPMA_OP_WRITE, false},
        {WC_ATOMIC_WRITE, RPMA_OP_WRITE, false},
        {WC_FLUSH, RPMA_OP_FLUSH, false},
        {IBV_WC_SEND, RPMA_OP_SEND, false},
        {IBV_WC_RECV, RPMA_OP_RECV, false},
        {IBV_WC_RECV_RDMA_WITH_IMM, RPMA_OP_RECV_RDMA_WITH_IMM, true},
    };
    new_conn();
    for (const struct way *way = ways; way < ways + LENGTH(ways); way++)
        for (size_t i = 0; i < LENGTH(cases); i++) {
            struct rpma_completion cmpl;
            if (way->old && cases[i].not_in_0_9)
                continue;
            memset(&cmpl, 0x5a, sizeof(cmpl));
            complete(cases[i].opcode, IBV_WC_SUCCESS, IBV_WC_WITH_IMM);
            MUST(way->get(&cmpl));
            EXPECT_CALLS("ibv_poll_cq");
            assert_ptr_equal(cmpl.op_context, (void *)0x1122334455667788u);
            assert_int_equal(cmpl.op, cases[i].op);
            assert_int_equal(cmpl.op_status, IBV_WC_SUCCESS);
            assert_int_equal(cmpl.byte_len, 77);
            if (way->old) // a program of 0.9.0 owns no more than 24 bytes
                assert_int_equal(cmpl.imm, 0x5a5a5a5a);
            else
                assert_int_equal(cmpl.flags, IBV_WC_WITH_IMM);
        }
    world_drop(&w);
}

// The caller has room for one completion.
static void others_wait_for_the_next_call(void **state) {
    (void)state;
    new_conn();
    for (const struct way *way = ways; way < ways + LENGTH(ways); way++) {
        struct rpma_completion cmpl;
        complete(IBV_WC_SEND, IBV_WC_SUCCESS, 0);
        complete(IBV_WC_RDMA_READ, IBV_WC_SUCCESS, 0);
        MUST(way->get(&cmpl));
        assert_int_equal(cmpl.op, RPMA_OP_SEND);
        MUST(way->get(&cmpl));
        assert_int_equal(cmpl.op, RPMA_OP_READ);
    }
    world_drop(&w);
}

static void immediate_data_comes_with_receives(void **state) {
    (void)state;
    static const struct {
        int opcode;
        unsigned flags;
        bool imm;
    } cases[] = {
        {IBV_WC_RECV, IBV_WC_WITH_IMM, true},
        {IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM, true},
        {IBV_WC_RECV, 0, false},
        {IBV_WC_SEND, IBV_WC_WITH_IMM, false},
    };
    new_conn();
    for (size_t v = 0; v < 3; v++)
        for (size_t i = 0; i < LENGTH(cases); i++) {
            struct rpma_completion cmpl;
            memset(&cmpl, 0x5a, sizeof(cmpl));
            complete(cases[i].opcode, IBV_WC_SUCCESS, cases[i].flags);
            MUST(ways[v].get(&cmpl));
            assert_int_equal(cmpl.imm, cases[i].imm ? 0xaabbccddu : 0x5a5a5a5au);
        }
    world_drop(&w);
}

static void failed_operations_are_no_errors(void **state) {
    (void)state;
    new_conn();
    for (const struct way *way = ways; way < ways + LENGTH(ways); way++) {
        struct rpma_completion cmpl;
        memset(&cmpl, 0x5a, sizeof(cmpl));
        complete(IBV_WC_SEND, IBV_WC_RETRY_EXC_ERR, 0);
        MUST(way->get(&cmpl));
        assert_ptr_equal(cmpl.op_context, (void *)0x1122334455667788u);
        assert_int_equal(cmpl.op_status, IBV_WC_RETRY_EXC_ERR);
        assert_int_equal(cmpl.op, way->old ? RPMA_OP_SEND : 0x5a5a5a5a);
        assert_int_equal(cmpl.byte_len, way->old ? 77 : 0x5a5a5a5a);
        assert_int_equal(cmpl.imm, 0x5a5a5a5a);
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), 1);
        assert_string_equal(logged_line(RPMA_LOG_LEVEL_WARNING, 0)->function, way->name);
    }
    // The kind does not matter, because it is not valid with a failure.
    for (const struct way *way = ways; way < ways + 3; way++) {
        struct rpma_completion cmpl;
        complete(IBV_WC_BIND_MW, IBV_WC_FATAL_ERR, 0);
        MUST(way->get(&cmpl));
    }
    world_drop(&w);
}

static void expect_get_error(const struct way *way, const struct expected_error *expected,
                             size_t untouched_from) {
    struct rpma_completion cmpl, before;
    memset(&cmpl, 0x5a, sizeof(cmpl));
    before = cmpl;
    unit_begin();
    unit_expect_error(way->get(&cmpl), way->name, expected, __FILE__, __LINE__);
    if (untouched_from == 0)
        assert_memory_equal(&cmpl, &before, sizeof(cmpl));
    else // the valid part of a completion that is lost
        assert_ptr_equal(cmpl.op_context, (void *)0x1122334455667788u);
}

static void kinds_without_name_are_not_supported(void **state) {
    (void)state;
    static const int opcodes[] = {IBV_WC_COMP_SWAP, IBV_WC_FETCH_ADD, IBV_WC_BIND_MW,
                                  IBV_WC_LOCAL_INV, IBV_WC_TSO,       1000};
    new_conn();
    for (const struct way *way = ways; way < ways + LENGTH(ways); way++) {
        const struct expected_error expected = {
            RPMA_E_NOSUPP, "RPMA_OP_*", "kind without an RPMA_OP_*", .calls = "ibv_poll_cq"};
        for (size_t i = 0; i < LENGTH(opcodes); i++) {
            complete(opcodes[i], IBV_WC_SUCCESS, 0);
            expect_get_error(way, &expected, way->old ? 0 : 1);
        }
        if (way->old) {
            complete(IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_SUCCESS, 0);
            expect_get_error(way, &expected, 0);
        }
    }
    world_drop(&w);
}

static void polling_fails_as_documented(void **state) {
    (void)state;
    new_conn();
    for (const struct way *way = ways; way < ways + LENGTH(ways); way++) {
        expect_get_error(way,
                         &(struct expected_error){RPMA_E_NO_COMPLETION, "CQ empty",
                                                  "ibv_poll_cq()", .logs = "empty",
                                                  .calls = "ibv_poll_cq"},
                         0);
        fake_poll_returns(2);
        expect_get_error(way,
                         &(struct expected_error){RPMA_E_UNKNOWN, "ibv_poll_cq() > 1",
                                                  "ibv_poll_cq()", .calls = "ibv_poll_cq",
                                                  .logs = "num_entries=1) returned 2"},
                         0);
        fake_fail("ibv_poll_cq", 1, EIO);
        expect_get_error(way,
                         &(struct expected_error){RPMA_E_PROVIDER, "ibv_poll_cq() < 0",
                                                  "ibv_poll_cq()", .calls = "ibv_poll_cq",
                                                  .logs = "gives no reason"},
                         0);
        fake_faults_off();
    }
    world_drop(&w);
}

// The function of 0.9.0 checks its arguments by itself.
static void null_is_refused_at_every_node(void **state) {
    (void)state;
    struct rpma_completion cmpl = {0};
    new_conn();
    WATCH(cmpl);
    unit_begin();
    unit_expect_error(conn_get_0_9(NULL, &cmpl), "rpma_conn_completion_get",
                      &(struct expected_error){RPMA_E_INVAL, "conn == NULL", "conn == NULL"},
                      __FILE__, __LINE__);
    unit_begin();
    unit_expect_error(conn_get_0_9(w.h.conn, NULL), "rpma_conn_completion_get",
                      &(struct expected_error){RPMA_E_INVAL, "cmpl == NULL", "cmpl == NULL"},
                      __FILE__, __LINE__);
    world_drop(&w);
}

static void completion_fd_is_that_of_the_main_queue(void **state) {
    (void)state;
    int fd = -1;
    new_conn();
    MUST(rpma_conn_get_completion_fd(w.h.conn, &fd));
    assert_int_equal(fd, world_cq_fd(cq));
    world_drop(&w);
}

int main(void) {
    conn_get_0_9 =
        (get_from_conn *)dlvsym(RTLD_DEFAULT, "rpma_conn_completion_get", "LIBRPMA_1.0");
    conn_get_0_10 =
        (get_from_conn *)dlvsym(RTLD_DEFAULT, "rpma_conn_completion_get", "LIBRPMA_0.10");
    cq_get_0_10 = (get_from_cq *)dlvsym(RTLD_DEFAULT, "rpma_cq_get_completion", "LIBRPMA_0.10");
    const struct CMUnitTest tests[] = {
        TEST(nodes_have_their_own_functions),
        TEST(kinds_are_mapped),
        TEST(others_wait_for_the_next_call),
        TEST(immediate_data_comes_with_receives),
        TEST(failed_operations_are_no_errors),
        TEST(kinds_without_name_are_not_supported),
        TEST(polling_fails_as_documented),
        TEST(null_is_refused_at_every_node),
        TEST(completion_fd_is_that_of_the_main_queue),
    };
    return UNIT_RUN("legacy", tests);
}
