// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operation.c -- see operation.h

#include "operation.h"

static const char *const plain_names[OPERATION_LAST + 1] = {
    [RPMA_WORK_READ] = "rpma_read",
    [RPMA_WORK_WRITE] = "rpma_write",
    [RPMA_WORK_WRITE_WITH_IMM] = "rpma_write_with_imm",
    [RPMA_WORK_ATOMIC_WRITE] = "rpma_atomic_write",
    [RPMA_WORK_FLUSH] = "rpma_flush",
    [RPMA_WORK_SEND] = "rpma_send",
    [RPMA_WORK_SEND_WITH_IMM] = "rpma_send_with_imm",
};

const struct operation_names operation_names[POST_METHODS] = {
    [OPERATION_POST] = {"rpma_post", "work[0]: "},
    [OPERATION_ARRAY] = {"rpma_post", "work[1]: "},
    [OPERATION_ADD] = {"rpma_batch_add", ""},
    [OPERATION_SET] = {"rpma_batch_set", ""},
};

const char *operation_plain_name(enum rpma_work_type kind) {
    return plain_names[kind];
}

struct rpma_work operation_of(const struct fixture *w, enum rpma_work_type kind) {
    struct rpma_work o = {.type = kind,
                          .imm = 0x12345678,
                          .remote = w->h.remote,
                          .remote_offset = 16,
                          .local = {w->h.mr, 24, 8},
                          .flush_type = (enum rpma_flush_type)77,
                          .flush_len = SIZE_MAX,
                          .flags = RPMA_F_COMPLETION_ALWAYS,
                          .op_context = (void *)(0x100 + (uintptr_t)kind)};
    memcpy(&o.value, "8 bytes", sizeof(o.value));
    if (kind == RPMA_WORK_SEND || kind == RPMA_WORK_SEND_WITH_IMM) {
        o.remote = NULL;
    } else if (kind == RPMA_WORK_ATOMIC_WRITE || kind == RPMA_WORK_FLUSH) {
        o.local = (struct rpma_sge){NULL, 1, SIZE_MAX};
        o.nsge = UINT32_MAX;
    }
    if (kind == RPMA_WORK_FLUSH) {
        o.flush_type = RPMA_FLUSH_TYPE_PERSISTENT;
        o.flush_len = 8;
    }
    return o;
}

struct rpma_work operation_of_sges(const struct fixture *w, enum rpma_work_type kind,
                                   uint32_t number) {
    static struct rpma_sge sgl[OPERATION_MAX_SGES];
    struct rpma_work o = operation_of(w, kind);
    for (size_t i = 0; i < LENGTH(sgl); i++)
        sgl[i] = (struct rpma_sge){w->h.mr, 100 * i, i == 2 ? 0 : 5 + i};
    o.local = (struct rpma_sge){NULL, 1, SIZE_MAX};
    o.sgl = sgl;
    o.nsge = number;
    return o;
}

int operation_by(enum post_method method, const struct rpma_work *o, struct fixture *w) {
    const struct rpma_work other = {.type = RPMA_WORK_SEND, .flags = RPMA_F_COMPLETION_ALWAYS};
    const struct rpma_work array[] = {other, *o, other};
    struct rpma_batch *const batch = w->h.batch;
    if (method == OPERATION_POST)
        return rpma_post(w->h.conn, o, 1, NULL);
    if (method == OPERATION_ARRAY)
        return rpma_post(w->h.conn, array, 3, NULL);
    int ret = rpma_batch_reset(batch);
    for (int i = 0; i < 3 && ret == 0; i++)
        ret = rpma_batch_add(batch, method == OPERATION_SET ? &other : &array[i]);
    if (ret == 0 && method == OPERATION_SET)
        ret = rpma_batch_set(batch, 1, o);
    return ret ? ret : rpma_batch_post(batch, NULL);
}

struct fake_post operation_got(enum post_method method) {
    return operation_posted(method != OPERATION_POST);
}

struct fake_post operation_posted(unsigned nth) {
    const struct fake_post *post = fake_posted(nth);
    if (!post)
        fail_msg("the device has %u requests, not %u:\n%s", fake_posted_count(), nth + 1,
                 logged_text());
    struct fake_post copy = *post;
    if (copy.flags & IBV_SEND_INLINE || (copy.num_sge == 1 && copy.sge.length == 0))
        memset(&copy.sg_list, 0, sizeof(copy.sg_list));
    return copy;
}

void operation_compare(const struct fake_post *got, const struct fake_post *expected,
                       const char *what) {
    if (memcmp(got, expected, sizeof(*got)) != 0)
        fail_msg("%s: opcode %d, flags 0x%x, wr_id 0x%lx, %d SGEs, not opcode %d, flags "
                 "0x%x, wr_id 0x%lx, %d SGEs as expected",
                 what, got->opcode, got->flags, (unsigned long)got->wr_id, got->num_sge,
                 expected->opcode, expected->flags, (unsigned long)expected->wr_id,
                 expected->num_sge);
}
