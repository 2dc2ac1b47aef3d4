// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batches.c -- see batches.h

#include "batches.h"

void batch_begin(struct world *w) {
    world_conn(w, &(const struct shape){.max_sge = 2});
    MUST(rpma_batch_new(w->h.conn, MOST, &w->h.batch));
}

struct rpma_work batch_write(const struct world *w, unsigned number) {
    return (struct rpma_work){.type = RPMA_WORK_WRITE,
                              .remote = w->h.remote,
                              .local = {w->h.mr, number, number + 1},
                              .flags = RPMA_F_COMPLETION_ALWAYS,
                              .op_context = (void *)(uintptr_t)number};
}

void batch_add(struct world *w, unsigned first, unsigned count) {
    for (unsigned i = first; i < first + count; i++)
        MUST(rpma_batch_add(w->h.batch, (const struct rpma_work[]){batch_write(w, i)}));
}

void batch_expect_taken(const struct world *w, unsigned from, unsigned first, unsigned count) {
    assert_int_equal(fake_posted_count(), from + count);
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(fake_posted(from + i)->wr_id, first + i);
        assert_int_equal(fake_posted(from + i)->sge.addr, (uintptr_t)w->memory + first + i);
        assert_int_equal(fake_posted(from + i)->sge.length, first + i + 1);
    }
}

void batch_post_all(struct world *w, unsigned first, unsigned count) {
    uint32_t posted = UINT32_MAX;
    MUST(rpma_batch_post(w->h.batch, &posted));
    EXPECT_CALLS(count ? "ibv_post_send" : "");
    assert_int_equal(posted, count);
    batch_expect_taken(w, 0, first, count);
}
