// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load.h -- the client's side of a load: how much is posted, and how long each operation takes

#ifndef RPMA_PERF_LOAD_H
#define RPMA_PERF_LOAD_H 1

#include "crew.h"

// How much a connection does; count 0: as long as the time lasts.
struct limits {
    uint64_t warmup;
    uint64_t count;
    uint64_t duration_ns;
};

// The thread of a worker: the warm-up, the gate, the load.
void *load_run(void *worker);

#endif
