// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// native.c -- queue pairs and regions for native flush and atomic write, and for emulated ones
// in builds without native operations

#include "fixture.h"

enum { // by value: older headers lack the names
    WITH_FLUSH = 1 << 11,
    WITH_ATOMIC_WRITE = 1 << 12,
};

static const struct shape outgoing = {.name = "outgoing"};

// ---- queue pairs ---------------------------------------------------------------------------

// A device without extended queue pairs rejects the mask with any other flags.
TEST_THAT(queue_pair_is_created_with_the_operations_of_the_device) {
    for (int device = 0; device < 16; device++) {
        const bool global = device & 1, persistent = device & 2, atomic_write = device & 4;
        const uint64_t atomics =
            device & 8 ? IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
                       : 0;                      // not requested if the device has none
        const bool flush = global && persistent; // a connection may need either
        fixture_reset();
        fake_device()->flush_caps =
            (global ? SIM_CAP_FLUSH_GLOBAL : 0) | (persistent ? SIM_CAP_FLUSH_PERSISTENT : 0);
        fake_profile()->has_native_atomic_write = atomic_write;
        fake_profile()->attr.atomic_cap = atomics ? IBV_ATOMIC_GLOB : IBV_ATOMIC_NONE;
        const unsigned expected =
            (flush && BUILD_FLUSHES ? WITH_FLUSH : 0) |
            (atomic_write && BUILD_WRITES_ATOMICALLY ? WITH_ATOMIC_WRITE : 0);
        fake_profile()->has_qp_ex = expected != 0;
        fixture_peer(&w);
        fixture_request(&w, &outgoing);
        const struct ibv_qp_init_attr_ex *qp = &fake_last("rdma_create_qp_ex")->qp;
        assert_int_equal(qp->comp_mask,
                         IBV_QP_INIT_ATTR_PD |
                             (expected ? (unsigned)IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0));
        if (expected) // and all operations that a list with them may contain
            assert_int_equal(qp->send_ops_flags,
                             expected | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_RDMA_WRITE |
                                 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
                                 IBV_QP_EX_WITH_SEND_WITH_IMM | atomics);
        MUST(rpma_conn_req_connect(&w.h.req, NULL, &w.h.conn));
        fixture_delete(&w);
        assert_string_equal(fake_misuses(), "");
    }
}

// The target of emulated flushes is created with the connection if a flush may be emulated.
TEST_THAT(native_connection_registers_no_flush_target) {
    for (int mode = RPMA_FLUSH_MODE_AUTO; mode <= (BUILD_FLUSHES ? 2 : 1); mode++) {
        fake_profile()->has_native_flush = true;
        fixture_conn(&w, &(const struct shape){.flush_mode = (enum rpma_flush_mode)mode});
        MUST(rpma_mr_dereg(&w.h.mr));
        MUST(rpma_conn_delete(&w.h.conn));
        MUST(rpma_peer_delete(&w.h.peer));
        EXPECT_CALLS(mode == RPMA_FLUSH_MODE_NATIVE ? "ibv_dealloc_pd"
                                                    : "ibv_dereg_mr ibv_dealloc_pd");
    }
}

// ---- regions -------------------------------------------------------------------------------

enum { ACCESS_GLOBAL = 1 << 8, ACCESS_PERSISTENT = 1 << 9 }; // older headers lack the names

enum {
    BOTH = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
};

static void peer_on(bool pmem, bool dax) {
    fake_profile()->has_native_flush = true;
    fake_device()->pmem = pmem;
    fake_device()->dax = dax;
    fake_profile()->has_odp = dax;
    memset(&w.h, 0, sizeof(w.h));
    MUST(rpma_peer_new(fake_context(0), &w.h.peer));
}

// Targets support emulated flushes of old initiators, so regions are always readable. Devices
// may reject persistent flushes of ordinary memory, so the registration is repeated without
// them. The kernel rejects FS-DAX memory without on-demand paging for any flush type, so both
// types remain.
TEST_THAT(region_is_valid_for_native_and_emulated_flushes) {
    static const struct {
        bool pmem, dax;
        int usage;
        unsigned access,
            native; // plus IBV_ACCESS_REMOTE_READ; native: only in a build with flush
        unsigned calls, native_calls, native_infos;
    } cases[] = {
        {true, false, RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY, 0, ACCESS_GLOBAL, 1, 1, 0},
        {true, false, RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT, 0, ACCESS_PERSISTENT, 1, 1, 0},
        {true, false, BOTH, 0, ACCESS_GLOBAL | ACCESS_PERSISTENT, 1, 1, 0},
        {false, false, BOTH, 0, ACCESS_GLOBAL, 1, 2, 1},
        {false, true, BOTH, IBV_ACCESS_ON_DEMAND, ACCESS_GLOBAL | ACCESS_PERSISTENT, 2, 2, 0},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        fixture_reset();
        peer_on(cases[i].pmem, cases[i].dax);
        MUST(rpma_mr_reg(w.h.peer, w.memory, 64, cases[i].usage, &w.h.mr));
        assert_int_equal(fake_count("ibv_reg_mr"),
                         BUILD_FLUSHES ? cases[i].native_calls : cases[i].calls);
        assert_int_equal(fake_last("ibv_reg_mr")->reg_mr.access,
                         IBV_ACCESS_REMOTE_READ | cases[i].access |
                             (BUILD_FLUSHES ? cases[i].native : 0));
        assert_int_equal(fake_nth("ibv_reg_mr", 1)->reg_mr.access & IBV_ACCESS_ON_DEMAND, 0);
        assert_int_equal(logged_count(RPMA_LOG_LEVEL_INFO),
                         BUILD_FLUSHES ? cases[i].native_infos : 0);
    }
}

// The line contains the names of the access flags of verbs.h.
TEST_THAT(native_post_error_is_not_retried) {
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
