// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// random.h -- random numbers, the same in each run; SEED in the environment changes them

#ifndef RANDOM_H
#define RANDOM_H 1

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

// splitmix64
static inline uint64_t random_64(void) {
    static uint64_t state;
    if (state == 0)
        state = getenv("SEED") ? strtoull(getenv("SEED"), NULL, 0) : 1;
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline unsigned below(unsigned limit) {
    return (unsigned)(random_64() % limit);
}

static inline bool now_and_then(unsigned times) {
    return below(times) == 0;
}

#endif // RANDOM_H
