// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// write_atomic.h -- the fenced write of 8 bytes from a region, as 0.9.0 to 0.13.0 had it.

#ifndef WRITE_ATOMIC_H
#define WRITE_ATOMIC_H 1

#include "life.h"

static inline int write_atomic(struct life *life, size_t offset, const void *op_context) {
    return rpma_write_atomic(life->client.conn, life->client.other, offset, life->client.mr, 0,
                             RPMA_F_COMPLETION_ALWAYS, op_context);
}

#endif // WRITE_ATOMIC_H
