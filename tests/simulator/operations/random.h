// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// random.h -- the random choices of both programs

#include "common.h"

#include <sys/random.h>

static inline unsigned below(unsigned limit) {
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        fail("no random number");
    return (unsigned)(number >> 33) % limit;
}
