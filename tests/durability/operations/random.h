// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// random.h -- the random choices of both programs

#include <rdma-sim.h>

static inline unsigned below(unsigned limit) {
    return (unsigned)(rdma_sim_random() >> 33) % limit;
}
