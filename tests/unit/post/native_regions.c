// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// native_regions.c -- regions for flushes on devices with native flush: registered for native
// flushes where the build knows them, and for reads in any case.

#include "world.h"

#include <stdlib.h>

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
