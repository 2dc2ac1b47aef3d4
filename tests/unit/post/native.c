// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// native.c -- native flush and atomic write, and regions for them: used where the build knows
// these operations, and emulated where it does not. Each test expects one or the other.

#include "world.h"

#include <stdlib.h>

enum { // by value: older headers lack the names
    WITH_FLUSH = 1 << 11,
    WITH_ATOMIC_WRITE = 1 << 12,
    FLUSH_GLOBAL = 1,
    FLUSH_PERSISTENT = 2,
    FLUSH_RANGE = 0,
};

static const struct shape outgoing = {.name = "outgoing"};
static void *const context = (void *)0x1234567890;
static const char eight[9] = "8 bytes!";

static void new_conn(bool flush, bool atomic_write) {
    fake_device()->native_flush = flush;
    fake_device()->native_atomic_write = atomic_write;
    world_conn(&w, &outgoing);
}

// ---- queue pairs ---------------------------------------------------------------------------

// A device without extended queue pairs refuses the mask, whatever the flags behind it are.
TEST_THAT(queue_pair_asks_for_what_the_device_has) {
    for (int device = 0; device < 8; device++) {
        const bool global = device & 1, persistent = device & 2, atomic_write = device & 4;
        const bool flush = global && persistent; // a connection may need either
        world_anew();
        fake_device()->flush_caps =
            (global ? FAKE_CAP_FLUSH_GLOBAL : 0) | (persistent ? FAKE_CAP_FLUSH_PERSISTENT : 0);
        fake_device()->native_atomic_write = atomic_write;
        const unsigned expected =
            (flush && BUILD_FLUSHES ? WITH_FLUSH : 0) |
            (atomic_write && BUILD_WRITES_ATOMICALLY ? WITH_ATOMIC_WRITE : 0);
        fake_device()->plain_qp = expected == 0;
        world_peer(&w);
        world_request(&w, &outgoing);
        const struct ibv_qp_init_attr_ex *qp = &fake_last("rdma_create_qp_ex")->qp;
        assert_int_equal(qp->comp_mask,
                         IBV_QP_INIT_ATTR_PD |
                             (expected ? (unsigned)IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0));
        if (expected) // with all operations that may be in one list with them
            assert_int_equal(qp->send_ops_flags,
                             expected | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE |
                                 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
                                 IBV_QP_EX_WITH_SEND_WITH_IMM |
                                 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
                                 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP);
        MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
        world_drop(&w);
        assert_string_equal(fake_misuses(), "");
    }
}

// If flushes may have to read after all, the target is there from the beginning.
TEST_THAT(flush_target_is_for_emulation) {
    for (int mode = RPMA_FLUSH_MODE_AUTO; mode <= (BUILD_FLUSHES ? 2 : 1); mode++) {
        fake_device()->native_flush = true;
        world_conn(&w, &(const struct shape){.flush_mode = (enum rpma_flush_mode)mode});
        MUST(rpma_mr_dereg(&w.h.mr));
        MUST(rpma_conn_delete(&w.h.conn));
        MUST(rpma_peer_delete(&w.h.peer));
        EXPECT_CALLS(mode == RPMA_FLUSH_MODE_NATIVE ? "ibv_dealloc_pd"
                                                    : "ibv_dereg_mr ibv_dealloc_pd");
    }
}

// ---- atomic write --------------------------------------------------------------------------

static const struct fake_post *posted(bool native) {
    return &fake_last(native ? "ibv_wr_complete" : "ibv_post_send")->send;
}

TEST_THAT(atomic_write_is_fenced) {
    for (int flags = 1; flags <= RPMA_F_COMPLETION_ALWAYS; flags += 2) {
        new_conn(false, true);
        MUST(rpma_atomic_write(w.h.conn, w.h.remote, 8, eight, flags, context));
        EXPECT_CALLS(BUILD_WRITES_ATOMICALLY
                         ? "ibv_wr_start ibv_wr_atomic_write ibv_wr_complete"
                         : "ibv_post_send");
        const struct fake_post *post = posted(BUILD_WRITES_ATOMICALLY);
        assert_int_equal(post->opcode,
                         BUILD_WRITES_ATOMICALLY ? FAKE_WR_ATOMIC_WRITE : IBV_WR_RDMA_WRITE);
        assert_int_equal(post->flags, IBV_SEND_FENCE | (flags & IBV_SEND_SIGNALED) |
                                          (BUILD_WRITES_ATOMICALLY ? 0 : IBV_SEND_INLINE));
        assert_int_equal(post->wr_id, (uintptr_t)context);
        assert_int_equal(post->remote_addr, WORLD_REMOTE_ADDR + 8);
        assert_int_equal(post->rkey, WORLD_REMOTE_RKEY);
        assert_memory_equal(post->inlined, eight, 8);
    }
}

// ---- flush ---------------------------------------------------------------------------------

static int flush(enum rpma_flush_type type, size_t offset, size_t len, int flags) {
    return rpma_flush(w.h.conn, w.h.remote, offset, len, type, flags, context);
}

TEST_THAT(flush_hands_its_range_on) {
    static const struct {
        enum rpma_flush_type type;
        unsigned native;
    } types[] = {
        {RPMA_FLUSH_TYPE_VISIBILITY, FLUSH_GLOBAL},
        {RPMA_FLUSH_TYPE_PERSISTENT, FLUSH_PERSISTENT},
    };
    for (size_t i = 0; i < LENGTH(types); i++) {
        new_conn(true, false);
        MUST(flush(types[i].type, 16, 48, RPMA_F_COMPLETION_ALWAYS));
        EXPECT_CALLS(BUILD_FLUSHES ? "ibv_wr_start ibv_wr_flush ibv_wr_complete"
                                   : "ibv_post_send");
        const struct fake_post *post = posted(BUILD_FLUSHES);
        assert_int_equal(post->opcode, BUILD_FLUSHES ? FAKE_WR_FLUSH : IBV_WR_RDMA_READ);
        assert_int_equal(post->flags, IBV_SEND_SIGNALED);
        assert_int_equal(post->wr_id, (uintptr_t)context);
        assert_int_equal(post->remote_addr, WORLD_REMOTE_ADDR + 16);
        assert_int_equal(post->rkey, WORLD_REMOTE_RKEY);
        if (BUILD_FLUSHES) {
            assert_int_equal(post->flush_len, 48);
            assert_int_equal(post->flush_type, types[i].native);
            assert_int_equal(post->flush_level, FLUSH_RANGE);
        }
        MUST(flush(types[i].type, 16, 48, RPMA_F_COMPLETION_ON_ERROR));
        assert_int_equal(posted(BUILD_FLUSHES)->flags, 0);
    }
}

// A native flush leaves the bounds to the device, which knows them better than the descriptor.
TEST_THAT(native_flush_leaves_bounds_to_the_device) {
    new_conn(true, false);
    if (BUILD_FLUSHES)
        MUST(flush(RPMA_FLUSH_TYPE_VISIBILITY, WORLD_REMOTE_SIZE, 8, 1));
    else
        EXPECT_ERROR(rpma_flush(w.h.conn, w.h.remote, WORLD_REMOTE_SIZE, 8,
                                RPMA_FLUSH_TYPE_VISIBILITY, 1, context),
                     RPMA_E_INVAL, "(emulated flush)",
                     "dst_offset >= size of the remote region (emulated flush)",
                     .logs = "dst_offset");
}

// ---- failures ------------------------------------------------------------------------------

#define RANGE "opcode=IBV_WR_FLUSH, remote_addr=0x10010, length=48, wr_id=0x1234567890"
#define FULL "the send queue is full, it holds "

// ENOSPC: rdma-core 56, providers/rxe/rxe_queue.h, check_qp_queue_full(), where rxe_post_send()
// returns ENOMEM. The provider has queued the operation before it notifies the device.
TEST_THAT(failures_are_reported) {
    static const struct {
        bool of_flush;
        const char *fault; // NULL: the call that posts
        int error;
        unsigned queued;
        const char *logs, *native_logs;
    } cases[] = {
        {false, NULL, ENOMEM, 0, FULL},       {true, NULL, ENOMEM, 0, FULL},
        {true, NULL, ENOMEM, 0, FULL, RANGE}, {true, NULL, ENOSPC, 0, FULL},
        {false, "doorbell", EINVAL, 1},       {true, "doorbell", EINVAL, 1},
    };
    new_conn(true, true);
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const bool of_flush = cases[i].of_flush;
        const bool native = of_flush ? BUILD_FLUSHES : BUILD_WRITES_ATOMICALLY;
        fake_fail(cases[i].fault ? cases[i].fault
                  : native       ? "ibv_wr_complete"
                                 : "ibv_post_send",
                  1, cases[i].error);
        EXPECT_ERROR_OF(
            of_flush ? "rpma_flush" : "rpma_atomic_write",
            of_flush ? flush(RPMA_FLUSH_TYPE_VISIBILITY, 16, 48, 1)
                     : rpma_atomic_write(w.h.conn, w.h.remote, 8, eight, 1, context),
            RPMA_E_PROVIDER, "ibv_post_send() failed",
            native ? "ibv_wr_complete()" : "ibv_post_send()", cases[i].error, .any_calls = true,
            .logs = native && cases[i].native_logs ? cases[i].native_logs : cases[i].logs);
        assert_int_equal(fake_posted_count(), cases[i].queued);
        fake_faults_off();
    }
}

// ---- regions, registered for native flushes where the build knows them, and for reads anyway
// ---

enum { ACCESS_GLOBAL = 1 << 8, ACCESS_PERSISTENT = 1 << 9 }; // older headers lack the names

enum {
    BOTH = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
};

static void peer_on(bool pmem, bool dax) {
    fake_device()->native_flush = true;
    fake_device()->pmem = pmem;
    fake_device()->dax = dax;
    fake_device()->odp = dax;
    memset(&w.h, 0, sizeof(w.h));
    MUST(rpma_peer_new(fake_context(0), &w.h.peer));
}

// Targets serve initiators of both kinds, so regions are readable in any case. Programs that
// flushed ordinary memory persistently keep working on devices that refuse that. The kernel
// pins the pages before the device looks at them, and refuses FS-DAX memory for that reason
// alone; on-demand paging does not check the kind of memory, so both flushes stay.
TEST_THAT(regions_serve_both_kinds_of_initiators) {
    static const struct {
        bool pmem, dax;
        int usage;
        unsigned access,
            native; // beside IBV_ACCESS_REMOTE_READ; native: where the build knows it
        unsigned calls, native_calls, native_infos;
    } cases[] = {
        {true, false, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, 0, ACCESS_GLOBAL, 1, 1, 0},
        {true, false, RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, 0, ACCESS_PERSISTENT, 1, 1, 0},
        {true, false, BOTH, 0, ACCESS_GLOBAL | ACCESS_PERSISTENT, 1, 1, 0},
        {false, false, BOTH, 0, ACCESS_GLOBAL, 1, 2, 1},
        {false, true, BOTH, IBV_ACCESS_ON_DEMAND, ACCESS_GLOBAL | ACCESS_PERSISTENT, 2, 2, 0},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        world_anew();
        peer_on(cases[i].pmem, cases[i].dax);
        MUST(rpma_mr_reg(w.h.peer, w.memory, 64, cases[i].usage, &w.h.mr));
        assert_int_equal(fake_count("ibv_reg_mr"),
                         BUILD_FLUSHES ? cases[i].native_calls : cases[i].calls);
        assert_int_equal(fake_last("ibv_reg_mr")->reg_mr.access,
                         IBV_ACCESS_REMOTE_READ | cases[i].access |
                             (BUILD_FLUSHES ? cases[i].native : 0));
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_INFO),
                         BUILD_FLUSHES ? cases[i].native_infos : 0);
    }
}

// The line names the access rights as rdma-core's verbs.h does.
TEST_THAT(other_refusals_are_final) {
    peer_on(false, false);
    WATCH(w.h);
    fake_fail("ibv_reg_mr", 1, EACCES);
    EXPECT_ERROR(rpma_mr_reg(w.h.peer, w.memory, 64, BOTH, &w.h.mr), RPMA_E_PROVIDER,
                 "ibv_reg_mr() failed", "ibv_reg_mr()", EACCES, "ibv_reg_mr",
                 .logs = BUILD_FLUSHES
                             ? "access=IBV_ACCESS_REMOTE_READ|IBV_ACCESS_FLUSH_GLOBAL|"
                               "IBV_ACCESS_FLUSH_PERSISTENT)"
                             : "access=IBV_ACCESS_REMOTE_READ)");
    fake_faults_off();
    WATCH(w.h);
    fake_fail_from("ibv_reg_mr", 1, EINVAL);
    EXPECT_ERROR(rpma_mr_reg(w.h.peer, w.memory, 64, BOTH, &w.h.mr), RPMA_E_PROVIDER,
                 "ibv_reg_mr() failed", "ibv_reg_mr()", EINVAL,
                 BUILD_FLUSHES ? "ibv_reg_mr ibv_reg_mr" : "ibv_reg_mr",
                 .logs = BUILD_FLUSHES
                             ? "access=IBV_ACCESS_REMOTE_READ|IBV_ACCESS_FLUSH_GLOBAL)"
                             : "access=IBV_ACCESS_REMOTE_READ)");
}
