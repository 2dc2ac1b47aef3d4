// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load.h -- the client's side of a load: posts operations and measures their latency

#ifndef RPMA_PERF_LOAD_H
#define RPMA_PERF_LOAD_H 1

#include "crew.h"

// The amount of work of a connection; count 0: until the duration is over.
struct limits {
    uint64_t warmup;
    uint64_t count;
    uint64_t duration_ns;
};

// The thread of a worker: does the warm-up, waits at the gate, and does the load.
void *load_run(void *worker);

#endif
