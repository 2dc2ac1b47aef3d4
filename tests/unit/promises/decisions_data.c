// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// decisions_data.c -- D: operations, native operations, devices

#include "decisions.h"

#include <dlfcn.h>
#include <stdlib.h>

static const struct shape outgoing = {0};

enum { FLUSH_PERSISTENT = 1 << 9, WC_FLUSH = 8, WC_ATOMIC_WRITE = 9 }; // of newer headers

// A remote region of that place and size, for every usage.
static void use_remote(uint64_t addr, uint64_t size) {
    unsigned char desc[21];
    world_descriptor(desc, addr, size, WORLD_REMOTE_RKEY, WORLD_EVERY_USAGE);
    MUST(rpma_mr_remote_delete(&w.h.remote));
    MUST(rpma_mr_remote_from_descriptor(desc, sizeof(desc), &w.h.remote));
}

TEST_THAT(D1) {
    const size_t len = (size_t)1 << 32;
    const int flags = RPMA_F_COMPLETION_ALWAYS;
    assert_true(world_conn(&w, &outgoing));
    MUST(rpma_srq_new(w.h.peer, NULL, &w.h.srq));
    MUST(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &w.h.req));
    struct rpma_conn *conn = w.h.conn;
    struct rpma_mr_local *mr = w.h.mr;
    struct rpma_mr_remote *remote = w.h.remote;
    unit_begin();
    EXPECT_CODE(rpma_read(conn, mr, 0, remote, 0, len, flags, NULL), RPMA_E_INVAL);
    EXPECT_CODE(rpma_write(conn, remote, 0, mr, 0, len, flags, NULL), RPMA_E_INVAL);
    EXPECT_CODE(rpma_write_with_imm(conn, remote, 0, mr, 0, len, flags, 1, NULL), RPMA_E_INVAL);
    EXPECT_CODE(rpma_send(conn, mr, 0, len, flags, NULL), RPMA_E_INVAL);
    EXPECT_CODE(rpma_send_with_imm(conn, mr, 0, len, flags, 1, NULL), RPMA_E_INVAL);
    EXPECT_CODE(rpma_recv(conn, mr, 0, len, NULL), RPMA_E_INVAL);
    EXPECT_CODE(rpma_conn_req_recv(w.h.req, mr, 0, len, NULL), RPMA_E_INVAL);
    EXPECT_CODE(rpma_srq_recv(w.h.srq, mr, 0, len, NULL), RPMA_E_INVAL);
    EXPECT_CODE(rpma_flush(conn, remote, 0, len, RPMA_FLUSH_TYPE_VISIBILITY, flags, NULL),
                RPMA_E_INVAL);
    EXPECT_CODE(rpma_mr_advise(mr, 0, len, IBV_ADVISE_MR_ADVICE_PREFETCH, 0), RPMA_E_INVAL);
    EXPECT_CALLS("");
}

static int flush_at(size_t offset, enum rpma_flush_type type) {
    unit_begin();
    return rpma_flush(w.h.conn, w.h.remote, offset, 1, type, RPMA_F_COMPLETION_ALWAYS, NULL);
}

TEST_THAT(D2) {
    assert_true(world_conn(&w, &outgoing));
    use_remote(WORLD_REMOTE_ADDR, 64);
    EXPECT_CODE(flush_at(61, RPMA_FLUSH_TYPE_VISIBILITY), 0);
    EXPECT_EQUAL("bytes read by a flush of the last 3 bytes",
                 fake_last("ibv_post_send")->send.sge.length, 3);
    EXPECT_CODE(flush_at(64, RPMA_FLUSH_TYPE_VISIBILITY), RPMA_E_INVAL);
    EXPECT_CALLS("");
}

TEST_THAT(D3) {
    assert_true(world_conn(&w, &outgoing));
    EXPECT_CODE(flush_at(0, (enum rpma_flush_type)7), RPMA_E_INVAL);
    EXPECT_CALLS("");
}

static const struct fake_post *atomic_write(void) {
    unit_begin();
    EXPECT_CODE(
        rpma_atomic_write(w.h.conn, w.h.remote, 8, "7 bytes", RPMA_F_COMPLETION_ALWAYS, NULL),
        0);
    const struct fake_call *call = fake_last("ibv_wr_complete");
    return call ? &call->send : &fake_last("ibv_post_send")->send;
}

TEST_THAT(D4) {
    fake_device()->native_atomic_write = true;
    assert_true(world_conn(&w, &outgoing));
    EXPECT_EQUAL("fence of an atomic write", (atomic_write()->flags & IBV_SEND_FENCE) != 0, 1);
}

TEST_THAT(D5) {
    fake_device()->native_atomic_write = true;
    assert_true(world_conn(&w, &outgoing));
    use_remote(WORLD_REMOTE_ADDR + 4, 64);
    EXPECT_EQUAL("opcode", atomic_write()->opcode, IBV_WR_RDMA_WRITE);
    EXPECT_EQUAL("warnings of a misaligned atomic write", logged_count(RPMA_LOG_LEVEL_WARNING),
                 1);
    EXPECT_EQUAL("opcode", atomic_write()->opcode, IBV_WR_RDMA_WRITE);
    EXPECT_EQUAL("warnings of another one", logged_count(RPMA_LOG_LEVEL_WARNING), 0);
}

// The opcode of a flush on a connection with that value of RPMA_FLUSH.
static int opcode_with(const char *choice) {
    setenv("RPMA_FLUSH", choice, 1);
    assert_true(world_conn(&w, &outgoing));
    unsetenv("RPMA_FLUSH");
    EXPECT_CODE(flush_at(0, RPMA_FLUSH_TYPE_VISIBILITY), 0);
    const struct fake_call *plain = fake_last("ibv_post_send");
    const int opcode = plain ? plain->send.opcode : FAKE_WR_FLUSH;
    world_drop(&w);
    return opcode;
}

TEST_THAT(D6) {
    fake_device()->native_flush = true;
    assert_true(world_peer(&w));
    MUST(rpma_mr_dereg(&w.h.mr));
    MUST(rpma_mr_reg(w.h.peer, w.memory, sizeof(w.memory), RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY,
                     &w.h.mr));
    EXPECT_EQUAL("remote read of a region to flush",
                 (fake_last("ibv_reg_mr")->reg_mr.access & IBV_ACCESS_REMOTE_READ) != 0, 1);
    world_drop(&w);
    EXPECT_EQUAL("opcode with RPMA_FLUSH=emulated", opcode_with("emulated"), IBV_WR_RDMA_READ);
    EXPECT_EQUAL("opcode with RPMA_FLUSH=native", opcode_with("native"), opcode_with("auto"));
}

TEST_THAT(D7) {
    fake_device()->plain_qp = true;
    assert_true(world_peer(&w));
    EXPECT_CODE(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &w.h.req), 0);
}

TEST_THAT(D8) {
    static const struct {
        int wc, op;
    } cases[] = {{WC_FLUSH, RPMA_OP_FLUSH}, {WC_ATOMIC_WRITE, RPMA_OP_WRITE}};
    int (*get)(struct rpma_cq * cq, struct rpma_completion * completion) = NULL;
    *(void **)&get = dlsym(RTLD_DEFAULT, "rpma_cq_get_completion");
    EXPECT_EQUAL("has rpma_cq_get_completion()", get != NULL, 1);
    assert_true(world_conn(&w, &outgoing));
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct rpma_completion completion;
        const struct ibv_wc wc = {.opcode = (enum ibv_wc_opcode)cases[i].wc};
        fake_complete(world_qp(&w)->send_cq, &wc);
        EXPECT_CODE(get(world_cq(&w), &completion), 0);
        EXPECT_EQUAL("operation", completion.op, cases[i].op);
    }
}

TEST_THAT(D12) {
    fake_device()->native_flush = true;
    fake_device()->pmem = false;
    assert_true(world_cfg(&w, &outgoing));
    MUST(rpma_peer_new(fake_context(0), &w.h.peer));
    EXPECT_CODE(rpma_mr_reg(w.h.peer, w.memory, sizeof(w.memory),
                            RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, &w.h.mr),
                0);
    EXPECT_EQUAL("persistent flush of the region",
                 (fake_last("ibv_reg_mr")->reg_mr.access & FLUSH_PERSISTENT) != 0, 0);
}

// Leaves a pattern on the stack where the next call will have its variables.
__attribute__((noinline)) static void scribble_on_stack(void) {
    volatile unsigned char stack[16384];
    for (size_t i = 0; i < sizeof(stack); i++)
        stack[i] = 0xa5;
}

// Providers copy the whole structure, including the padding behind its last member.
TEST_THAT(D13) {
    const size_t used = offsetof(struct ibv_srq_init_attr, attr) + sizeof(struct ibv_srq_attr);
    struct ibv_srq_init_attr attr;
    assert_true(world_peer(&w));
    MUST(rpma_srq_new(w.h.peer, NULL, &w.h.srq)); // binds symbols, which takes stack
    MUST(rpma_srq_delete(&w.h.srq));
    unit_begin();
    scribble_on_stack();
    EXPECT_CODE(rpma_srq_new(w.h.peer, NULL, &w.h.srq), 0);
    memcpy(&attr, &fake_last("ibv_create_srq")->srq, sizeof(attr));
    EXPECT_EQUAL("srq_limit", attr.attr.srq_limit, 0);
    EXPECT_EQUAL("srq_context is set to something", attr.srq_context != NULL, 0);
    const unsigned char *bytes = (const unsigned char *)&attr;
    for (size_t i = used; i < sizeof(attr); i++)
        EXPECT_EQUAL("byte behind the attributes of a shared receive queue", bytes[i], 0);
}

TEST_THAT(D14) {
    assert_true(world_peer(&w));
    EXPECT_CODE(rpma_conn_req_new(w.h.peer, WORLD_ADDRESS, WORLD_PORT, NULL, &w.h.req), 0);
    EXPECT_EQUAL("room for 10 sends and 10 receives", fake_last("ibv_create_cq")->create_cq.cqe,
                 20);
}
