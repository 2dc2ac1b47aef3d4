// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// atomic_write.h -- the atomic write of 8 bytes, since 0.13.0.

#ifndef ATOMIC_WRITE_H
#define ATOMIC_WRITE_H 1

#include "life.h"

static inline int atomic_write(struct life *life, size_t offset, const void *op_context) {
    return rpma_atomic_write(life->client.conn, life->client.other, offset,
                             (const char *)life->client.memory, RPMA_F_COMPLETION_ALWAYS,
                             op_context);
}

#endif // ATOMIC_WRITE_H
