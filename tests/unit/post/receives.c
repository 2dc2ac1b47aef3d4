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

TEST_THAT(receive_of_several_sges_is_posted_whole) {
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

// The driver must not be called: bnxt_re would end the process.
TEST_THAT(receives_of_a_connection_with_an_srq_are_refused) {
    static const char *const names[] = {"rpma_recv", "rpma_recv_many", "rpma_conn_req_recv",
                                        "rpma_conn_req_recv_many"};
    const struct rpma_receive empty = {0};
    list_fixture_new(true, 1);
    for (size_t i = 0; i < LENGTH(names); i++) {
        const bool of_request = i >= 2, many = i % 2;
        const uintptr_t queue = of_request ? (uintptr_t)w.h.req : (uintptr_t)w.h.conn;
        for (unsigned len = 0; len <= 8; len += 8) {
            const bool has_region = of_request || len;
            const uintptr_t one[] = {queue, has_region ? (uintptr_t)w.h.mr : 0, 0, len, 0};
            const uintptr_t array[] = {queue, (uintptr_t)&empty, len / 8, 0};
            EXPECT_ERROR_OF(names[i], call_named(names[i])->call(many ? array : one),
                            RPMA_E_INVAL, "the connection has a shared receive queue",
                            "the connection has a shared receive queue",
                            .logs = "post its receives with rpma_srq_recv()");
            EXPECT_CALLS("");
        }
    }
    list_fixture_delete();
}
