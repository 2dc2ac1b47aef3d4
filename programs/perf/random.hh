// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// random.hh -- unpredictable numbers

#pragma once

#include "failure.hh"

#include <sys/random.h>

inline uint64_t random_number() {
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        fail("no random number");
    return number;
}
