// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// receives.c -- the receives that queues get, with one SGE, several SGEs or none

#include "arguments.h"
#include "request.h"

#include <stdio.h>

static void expect_received(const struct list_function *f, const struct rpma_sge *sgl,
                            uint32_t number) {
    struct fake_receive expected = {.wr_id = (uintptr_t)LIST_CONTEXT};
    EXPECT_CALLS(f->call);
    const struct fake_receive got = *fake_received(0);
    for (uint32_t i = 0; i < number; i++)
        append_sge(&expected.sg_list, &sgl[i]);
    assert_memory_equal(&got, &expected, sizeof(got));
}

static void receive_sges(const struct list_function *f) {
    const struct rpma_sge alone[] = {list_sge(1), {NULL, 0, 0}, {list_regions[1], 5, 0}};
    struct rpma_sge sgl[LIST_MAX];
    for (unsigned pattern = 0; pattern < PATTERNS; pattern++) {
        const uint32_t number = make_sges(sgl, pattern);
        MUST_OF(f->name, list_run(f, sgl, number));
        expect_received(f, sgl, number);
    }
    for (size_t i = 0; i < LENGTH(alone); i++) {
        MUST_OF(f->name, list_run(f, &alone[i], 0));
        expect_received(f, &alone[i], 1);
    }
}

TEST_THAT(receives_take_sges) {
    list_for_each_receive(receive_sges);
}

// The function that posts one receive has no "_many" in its name.
static void receive_one(const struct list_function *f) {
    static const size_t lengths[] = {1, 4096, UINT32_MAX, 0}; // 0: no region
    char name[32];
    (void)snprintf(name, sizeof(name), "%.*s", (int)strlen(f->name) - 5, f->name);
    const bool of_request = strcmp(name, "rpma_conn_req_recv") == 0; // needs a region
    const uintptr_t queue = f->srq       ? (uintptr_t)w.h.srq
                            : of_request ? (uintptr_t)w.h.req
                                         : (uintptr_t)w.h.conn;
    fake_device()->any_range = true;
    for (size_t i = 0; i < LENGTH(lengths) - of_request; i++) {
        const size_t offset = lengths[i] == 1 ? SIZE_MAX - 7 : 24;
        const struct rpma_sge sge = {lengths[i] ? w.h.mr : NULL, lengths[i] ? offset : 0,
                                     lengths[i]};
        const uintptr_t words[] = {queue, (uintptr_t)sge.mr, sge.offset, sge.len,
                                   (uintptr_t)LIST_CONTEXT};
        MUST_OF(name, call_named(name)->call(words));
        expect_received(f, &sge, 1);
        fake_fail(f->call, 1, ENOMEM);
        EXPECT_ERROR_OF(name, call_named(name)->call(words), RPMA_E_PROVIDER, f->cause,
                        f->cause, ENOMEM, f->call,
                        .logs = f->srq ? "rpma_srq_cfg_set_rq_size()"
                                       : "the receive queue is full, it holds ");
        fake_faults_off();
    }
}

TEST_THAT(plain_receives_take_one_sge_or_none) {
    list_for_each_receive(receive_one);
}
