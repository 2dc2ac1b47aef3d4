// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// list_refused.c -- operations and receives of several pieces: the lists that are refused, for
// their sums, their regions and their elements, and what the provider refuses

#include "lists.h"

#include <stdio.h>

static void refuse(const struct list_function *f, const struct rpma_sge *sgl, uint32_t nsge,
                   const char *condition, const char *logs) {
    unit_begin();
    unit_expect_error(
        list_run(f, sgl, nsge), f->name,
        &(struct expected_error){RPMA_E_INVAL, condition, condition, .logs = logs}, __FILE__,
        __LINE__);
}

static void add_up(const struct list_function *f) {
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
            sgl[k] = (struct rpma_sge){list_regions[k], 0, cases[i].len[k]};
        if (cases[i].fits)
            list_must(f, sgl, 3);
        else
            refuse(f, sgl, 3, "sum of sgl[i].len > UINT32_MAX", "UINT32_MAX");
    }
}

static void sums_fit_a_work_request(void **state) {
    (void)state;
    list_for_each(add_up);
}

static void miss_region(const struct list_function *f) {
    for (int at = 0; at < LIST_MOST; at++)
        for (int with_offset = 0; with_offset < 2; with_offset++) {
            struct rpma_sge sgl[LIST_MOST];
            for (int i = 0; i < LIST_MOST; i++)
                sgl[i] = list_element(i);
            sgl[at] = (struct rpma_sge){NULL, (size_t)with_offset, 1 - (size_t)with_offset};
            refuse(f, sgl, LIST_MOST,
                   "sgl[i].mr == NULL && (sgl[i].offset != 0 || sgl[i].len != 0)",
                   "mr == NULL");
            if (at > 0)
                list_must(f, sgl, (uint32_t)at); // the others are valid
        }
}

static void elements_need_regions(void **state) {
    (void)state;
    list_for_each(miss_region);
}

// One more than what the configuration asked for; the line names who would give more.
static void have_too_many(const struct list_function *f) {
    struct rpma_sge sgl[LIST_MOST + 1];
    for (int i = 0; i <= LIST_MOST; i++)
        sgl[i] = list_element(i);
    list_must(f, sgl, LIST_MOST);
    refuse(f, sgl, LIST_MOST + 1,
           f->srq ? "nsge > max_sge of the shared receive queue"
                  : "nsge > max_sge of the connection",
           f->srq
               ? "nsge is 6, at most 5 pieces are possible; rpma_srq_cfg_set_max_sge() asks"
               : "nsge is 6, at most 5 pieces are possible; rpma_conn_cfg_set_max_sge() asks");
}

static void configurations_limit_the_elements(void **state) {
    (void)state;
    list_for_each(have_too_many);
}

static void fail_in_provider(const struct list_function *f) {
    char condition[64];
    struct rpma_sge sgl[2] = {list_element(0), list_element(1)};
    snprintf(condition, sizeof(condition), "%s failed", f->cause);
    fake_fail(f->call, 1, EINVAL);
    unit_begin();
    unit_expect_error(
        list_run(f, sgl, 2), f->name,
        &(struct expected_error){RPMA_E_PROVIDER, condition, f->cause, EINVAL, f->call,
                                 .before = f->kind ? "work[0]: " : "receives[0]: "},
        __FILE__, __LINE__);
    fake_faults_off();
}

static void provider_failures_are_reported(void **state) {
    (void)state;
    list_for_each(fail_in_provider);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(sums_fit_a_work_request),
        TEST(elements_need_regions),
        TEST(configurations_limit_the_elements),
        TEST(provider_failures_are_reported),
    };
    return UNIT_RUN("list_refused", tests);
}
