// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operation.c -- hands an operation to its plain function, or to the one of batches.

#include "operation.h"

static const char *const names[OPERATION_KINDS] = {
    "rpma_batch_read",         "rpma_batch_readv",          "rpma_batch_write",
    "rpma_batch_writev",       "rpma_batch_write_with_imm", "rpma_batch_writev_with_imm",
    "rpma_batch_atomic_write", "rpma_batch_flush",          "rpma_batch_send",
    "rpma_batch_sendv",        "rpma_batch_send_with_imm",  "rpma_batch_sendv_with_imm",
};
static const char *const plain_names[OPERATION_KINDS] = {
    "rpma_read",           "rpma_readv",           "rpma_write",         "rpma_writev",
    "rpma_write_with_imm", "rpma_writev_with_imm", "rpma_atomic_write",  "rpma_flush",
    "rpma_send",           "rpma_sendv",           "rpma_send_with_imm", "rpma_sendv_with_imm",
};

const char *operation_name(enum operation_kind kind) {
    return plain_names[kind];
}

const char *operation_batch_name(enum operation_kind kind) {
    return names[kind];
}

// The two have the same arguments behind the first.
#define EACH_KIND(PREFIX, first)                                                             \
    switch (o->kind) {                                                                       \
    case OPERATION_READ:                                                                     \
        return PREFIX##read(first, o->local, o->local_offset, o->remote, o->remote_offset,   \
                            o->len, o->flags, o->op_context);                                \
    case OPERATION_READV:                                                                    \
        return PREFIX##readv(first, o->sgl, o->nsge, o->remote, o->remote_offset, o->flags,  \
                             o->op_context);                                                 \
    case OPERATION_WRITE:                                                                    \
        return PREFIX##write(first, o->remote, o->remote_offset, o->local, o->local_offset,  \
                             o->len, o->flags, o->op_context);                               \
    case OPERATION_WRITEV:                                                                   \
        return PREFIX##writev(first, o->remote, o->remote_offset, o->sgl, o->nsge, o->flags, \
                              o->op_context);                                                \
    case OPERATION_WRITE_WITH_IMM:                                                           \
        return PREFIX##write_with_imm(first, o->remote, o->remote_offset, o->local,          \
                                      o->local_offset, o->len, o->flags, o->imm,             \
                                      o->op_context);                                        \
    case OPERATION_WRITEV_WITH_IMM:                                                          \
        return PREFIX##writev_with_imm(first, o->remote, o->remote_offset, o->sgl, o->nsge,  \
                                       o->flags, o->imm, o->op_context);                     \
    case OPERATION_ATOMIC_WRITE:                                                             \
        return PREFIX##atomic_write(first, o->remote, o->remote_offset, o->value, o->flags,  \
                                    o->op_context);                                          \
    case OPERATION_FLUSH:                                                                    \
        return PREFIX##flush(first, o->remote, o->remote_offset, o->len, o->type, o->flags,  \
                             o->op_context);                                                 \
    case OPERATION_SEND:                                                                     \
        return PREFIX##send(first, o->local, o->local_offset, o->len, o->flags,              \
                            o->op_context);                                                  \
    case OPERATION_SENDV:                                                                    \
        return PREFIX##sendv(first, o->sgl, o->nsge, o->flags, o->op_context);               \
    case OPERATION_SEND_WITH_IMM:                                                            \
        return PREFIX##send_with_imm(first, o->local, o->local_offset, o->len, o->flags,     \
                                     o->imm, o->op_context);                                 \
    default:                                                                                 \
        return PREFIX##sendv_with_imm(first, o->sgl, o->nsge, o->flags, o->imm,              \
                                      o->op_context);                                        \
    }

int operation_post(const struct operation *o, struct rpma_conn *conn) {
    EACH_KIND(rpma_, conn)
}

int operation_add(const struct operation *o, struct rpma_batch *batch) {
    EACH_KIND(rpma_batch_, batch)
}

struct fake_post operation_posted(unsigned nth) {
    const struct fake_post *post = fake_posted(nth);
    if (!post)
        fail_msg("the device has %u requests, not %u", fake_posted_count(), nth + 1);
    struct fake_post copy = *post;
    if (copy.flags & IBV_SEND_INLINE)
        memset(&copy.elements, 0, sizeof(copy.elements));
    return copy;
}

struct fake_post operation_expected(const struct operation *o, struct rpma_conn *conn) {
    fake_forget();
    const int ret = operation_post(o, conn);
    if (ret != 0 || fake_posted_count() != 1)
        fail_msg("%s = %s:\n%s", operation_name(o->kind), contract_code_name(ret),
                 logged_text());
    return operation_posted(0);
}
