// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batches.h -- a batch whose operations are told apart by their contexts, which count from 0

#ifndef BATCHES_H
#define BATCHES_H 1

#include "world.h"

enum { MOST = 8, OPS = 6 }; // the room of the batch, and the operations of most tests

// A connection and a batch with room for MOST operations.
void batch_begin(struct world *w);

// A write with that context.
struct rpma_work batch_write(const struct world *w, unsigned number);

// Adds operations with the contexts from first on; the device gets them in that order.
void batch_add(struct world *w, unsigned first, unsigned count);

// Expects the operations with these contexts in the record from index from on, and none after.
void batch_expect_taken(const struct world *w, unsigned from, unsigned first, unsigned count);

// Posts the pending operations, which must be these.
void batch_post_all(struct world *w, unsigned first, unsigned count);

#endif // BATCHES_H
