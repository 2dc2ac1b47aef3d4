// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// operation.h -- an operation of a connection as data: posted by the plain function or added to
// a batch by its counterpart, so that one can be held against the other.

#ifndef OPERATION_H
#define OPERATION_H 1

#include "world.h"

enum operation_kind {
    OPERATION_READ,
    OPERATION_READV,
    OPERATION_WRITE,
    OPERATION_WRITEV,
    OPERATION_WRITE_WITH_IMM,
    OPERATION_WRITEV_WITH_IMM,
    OPERATION_ATOMIC_WRITE,
    OPERATION_FLUSH,
    OPERATION_SEND,
    OPERATION_SENDV,
    OPERATION_SEND_WITH_IMM,
    OPERATION_SENDV_WITH_IMM,
    OPERATION_KINDS
};

enum { OPERATION_MOST_SGES = 8 };

struct operation {
    enum operation_kind kind;
    struct rpma_mr_local *local;
    struct rpma_mr_remote *remote;
    size_t local_offset, remote_offset, len; // len: also of a flush
    const struct rpma_sge *sgl;
    int nsge;
    const char *value; // of an atomic write
    enum rpma_flush_type type;
    int flags;
    uint32_t imm;
    const void *op_context;
};

// "rpma_read" and "rpma_batch_read" and so on.
const char *operation_name(enum operation_kind kind);
const char *operation_batch_name(enum operation_kind kind);

int operation_post(const struct operation *o, struct rpma_conn *conn);
int operation_add(const struct operation *o, struct rpma_batch *batch);

// The request as it is compared: where inline data came from does not matter, it was copied.
struct fake_post operation_posted(unsigned nth);
// What the plain function hands to the device; fails the test when it does not.
struct fake_post operation_expected(const struct operation *o, struct rpma_conn *conn);

#endif // OPERATION_H
