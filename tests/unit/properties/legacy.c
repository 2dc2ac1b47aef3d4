// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// legacy.c -- completions of releases before 0.12, each at its version node

#include "fixture.h"

#include <arpa/inet.h>
#include <dlfcn.h>

enum { WC_FLUSH = 8, WC_ATOMIC_WRITE = 9 }; // some headers lack them

static struct rpma_cq *cq;
static struct ibv_cq *queue;

typedef int get_from_conn(struct rpma_conn *conn, struct rpma_completion *cmpl);
typedef int get_from_cq(struct rpma_cq *cq, struct rpma_completion *cmpl);
static get_from_conn *conn_get_0_9, *conn_get_0_10;
static get_from_cq *cq_get_0_10;

#define BY(name, call)                              \
    static int name(struct rpma_completion *cmpl) { \
        return call;                                \
    }
BY(by_cq, rpma_cq_get_completion(cq, cmpl))
BY(by_cq_0_10, cq_get_0_10(cq, cmpl))
BY(by_conn_0_10, conn_get_0_10(w.h.conn, cmpl))
BY(by_conn_0_9, conn_get_0_9(w.h.conn, cmpl))

static const struct getter {
    int (*get)(struct rpma_completion *cmpl);
    const char *name;
    bool old; // 24 bytes; checks the type of the operation first
} getters[] = {
    {by_cq, "rpma_cq_get_completion", false},
    {by_cq_0_10, "rpma_cq_get_completion", false},
    {by_conn_0_10, "rpma_conn_completion_get", false},
    {by_conn_0_9, "rpma_conn_completion_get", true},
};

static void new_conn(void) {
    const struct shape shape = {.name = "outgoing"};
    fixture_conn(&w, &shape);
    cq = fixture_cq(&w);
    queue = fixture_qp(&w)->send_cq;
}

static void complete_request(int opcode, enum ibv_wc_status status, unsigned flags) {
    const struct ibv_wc wc = {.wr_id = 0x1122334455667788u,
                              .status = status,
                              .opcode = (enum ibv_wc_opcode)opcode,
                              .byte_len = 77,
                              .imm_data = htonl(0xaabbccdd),
                              .wc_flags = flags};
    fake_complete(queue, &wc);
}

// The members of the structure that a call writes. Their offsets are the same in every
// release; the structure of 0.9.0 (24 bytes) has no flags and no immediate data.
enum { CONTEXT = 1, OP = 2, LEN = 4, STATUS = 8, FLAGS = 16, IMM = 32 };
enum { FAILED = CONTEXT | STATUS, OLD = CONTEXT | OP | LEN | STATUS, NEW = OLD | FLAGS };

struct image {
    unsigned char before[64], cmpl[96];
};

static void put(struct image *image, unsigned written, size_t offset, const void *value,
                size_t size) {
    if (written)
        memcpy(image->cmpl + offset, value, size);
}

static struct image image_of(unsigned written, int op, enum ibv_wc_status status,
                             unsigned flags) {
    static const uint64_t context = 0x1122334455667788u;
    static const uint32_t len = 77, imm = 0xaabbccdd;
    struct image image;
    memset(&image, 0x5a, sizeof(image));
    put(&image, written & CONTEXT, 0, &context, 8);
    put(&image, written & OP, 8, &op, 4);
    put(&image, written & LEN, 12, &len, 4);
    put(&image, written & STATUS, 16, &status, 4);
    put(&image, written & FLAGS, 20, &flags, 4);
    put(&image, written & IMM, 24, &imm, 4);
    return image;
}

TEST_THAT(legacy_completion_writes_only_its_members) {
    const enum ibv_wc_status good = IBV_WC_SUCCESS, bad = IBV_WC_RETRY_EXC_ERR;
    const struct {
        int opcode;
        enum ibv_wc_status status;
        unsigned flags;
        int op;
        unsigned old, new; // written members; old 0: not supported
    } cases[] = {
        {IBV_WC_RDMA_READ, good, 0, RPMA_OP_READ, OLD, NEW},
        {IBV_WC_RDMA_WRITE, good, IBV_WC_WITH_IMM, RPMA_OP_WRITE, OLD, NEW},
        {WC_ATOMIC_WRITE, good, 0, RPMA_OP_WRITE, OLD, NEW},
        {WC_FLUSH, good, 0, RPMA_OP_FLUSH, OLD, NEW},
        {IBV_WC_SEND, good, IBV_WC_WITH_IMM, RPMA_OP_SEND, OLD, NEW},
        {IBV_WC_RECV, good, 0, RPMA_OP_RECV, OLD, NEW},
        {IBV_WC_RECV, good, IBV_WC_GRH, RPMA_OP_RECV, OLD, NEW},
        {IBV_WC_RECV, good, IBV_WC_WITH_IMM, RPMA_OP_RECV, OLD, NEW | IMM},
        {IBV_WC_RECV_RDMA_WITH_IMM, good, IBV_WC_WITH_IMM, RPMA_OP_RECV_RDMA_WITH_IMM, 0,
         NEW | IMM},
        {IBV_WC_SEND, bad, 0, RPMA_OP_SEND, OLD, FAILED},
        {IBV_WC_RECV, bad, IBV_WC_WITH_IMM, RPMA_OP_RECV, OLD, FAILED},
        // The type of a failed operation is undefined, so it is ignored.
        {IBV_WC_BIND_MW, bad, 0, 0, 0, FAILED},
        {IBV_WC_RECV_RDMA_WITH_IMM, bad, 0, 0, 0, FAILED},
    };
    new_conn();
    for (const struct getter *getter = getters; getter < getters + LENGTH(getters); getter++)
        for (size_t i = 0; i < LENGTH(cases); i++) {
            const unsigned written = getter->old ? cases[i].old : cases[i].new;
            const struct image wanted =
                image_of(written, cases[i].op, cases[i].status, cases[i].flags);
            struct image image;
            if (written == 0)
                continue;
            memset(&image, 0x5a, sizeof(image));
            complete_request(cases[i].opcode, cases[i].status, cases[i].flags);
            MUST(getter->get((void *)image.cmpl));
            EXPECT_CALLS("ibv_poll_cq");
            assert_memory_equal(&image, &wanted, sizeof(image));
            if (cases[i].status != IBV_WC_SUCCESS)
                assert_string_equal(logged_line(RPMA_LOG_LEVEL_WARNING, 0)->function,
                                    getter->name);
            assert_int_equal(logged_count(RPMA_LOG_LEVEL_WARNING), cases[i].status != good);
        }
}

// A call returns one completion.
TEST_THAT(remaining_events_are_kept_for_the_next_call) {
    new_conn();
    for (const struct getter *getter = getters; getter < getters + LENGTH(getters); getter++) {
        struct rpma_completion cmpl;
        complete_request(IBV_WC_SEND, IBV_WC_SUCCESS, 0);
        complete_request(IBV_WC_RDMA_READ, IBV_WC_SUCCESS, 0);
        MUST(getter->get(&cmpl));
        assert_int_equal(cmpl.op, RPMA_OP_SEND);
        MUST(getter->get(&cmpl));
        assert_int_equal(cmpl.op, RPMA_OP_READ);
    }
}

static void expect_get_error(const struct getter *getter, const struct expected_error *expected,
                             unsigned written) {
    const struct image wanted = image_of(written, 0, IBV_WC_SUCCESS, 0);
    struct image image;
    memset(&image, 0x5a, sizeof(image));
    unit_begin();
    unit_expect_error(getter->get((void *)image.cmpl), getter->name, expected, __FILE__,
                      __LINE__);
    assert_memory_equal(&image, &wanted, sizeof(image));
}

TEST_THAT(failures_are_logged) {
#define POLLED "ibv_poll_cq()", .calls = "ibv_poll_cq"
    static const int opcodes[] = {IBV_WC_COMP_SWAP,         IBV_WC_FETCH_ADD, IBV_WC_BIND_MW,
                                  IBV_WC_LOCAL_INV,         IBV_WC_TSO,       1000,
                                  IBV_WC_RECV_RDMA_WITH_IMM}; // the last: unknown to 0.9 only
    static const struct expected_error failures[] = {
        {RPMA_E_NOSUPP, "RPMA_OP_*", "RPMA_OP_* is defined for the opcode",
         .calls = "ibv_poll_cq"},
        {RPMA_E_NO_COMPLETION, "CQ empty", POLLED, .logs = "empty"},
        {RPMA_E_UNKNOWN, "ibv_poll_cq() > 1", POLLED, .logs = "num_entries=1) returned 2"},
        {RPMA_E_PROVIDER, "ibv_poll_cq() < 0", POLLED, .logs = "gives no reason"}};
    new_conn();
    for (const struct getter *getter = getters; getter < getters + LENGTH(getters); getter++) {
        for (size_t i = 0; i < LENGTH(opcodes) - !getter->old; i++) {
            complete_request(opcodes[i], IBV_WC_SUCCESS, 0);
            expect_get_error(getter, &failures[0], getter->old ? 0 : FAILED);
        }
        expect_get_error(getter, &failures[1], 0);
        fake_poll_returns(2);
        expect_get_error(getter, &failures[2], 0);
        fake_fail("ibv_poll_cq", 1, EIO);
        expect_get_error(getter, &failures[3], 0);
        fake_faults_off();
    }
}

// The function of 0.9.0 has its own checks of arguments.
TEST_THAT(null_is_refused_at_every_version_node) {
    struct rpma_completion cmpl = {0};
    new_conn();
    WATCH(cmpl);
    EXPECT_ERROR_OF("rpma_conn_completion_get", conn_get_0_9(NULL, &cmpl), RPMA_E_INVAL,
                    "conn == NULL", "conn == NULL");
    EXPECT_ERROR_OF("rpma_conn_completion_get", conn_get_0_9(w.h.conn, NULL), RPMA_E_INVAL,
                    "cmpl == NULL", "cmpl == NULL");
}

TEST_THAT(completion_fd_is_that_of_the_main_cq) {
    int fd = -1;
    new_conn();
    MUST(rpma_conn_get_completion_fd(w.h.conn, &fd));
    assert_int_equal(fd, fixture_cq_fd(cq));
}

int main(int argc, char **argv) {
    *(void **)&conn_get_0_9 = dlvsym(RTLD_DEFAULT, "rpma_conn_completion_get", "LIBRPMA_1.0");
    *(void **)&conn_get_0_10 = dlvsym(RTLD_DEFAULT, "rpma_conn_completion_get", "LIBRPMA_0.10");
    *(void **)&cq_get_0_10 = dlvsym(RTLD_DEFAULT, "rpma_cq_get_completion", "LIBRPMA_0.10");
    return unit_main(argc, argv);
}
