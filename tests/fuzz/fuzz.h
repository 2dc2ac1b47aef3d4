// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fuzz.h -- common parts of the fuzz targets: expectations, a log function that reads its
// arguments, and the proof that a run reached both outcomes.

#ifndef FUZZ_H
#define FUZZ_H 1

#include <stdbool.h>
#include <stdint.h>

#include "librpma.h"

// Aborts the run; libFuzzer then reports the input.
#define FUZZ_EXPECT(condition) fuzz_expect(condition, #condition)
void fuzz_expect(bool holds, const char *condition);

static inline uint64_t fuzz_number(const uint8_t *bytes) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

// Whether the descriptor describes a region: it has a usage, and ends within the address space.
static inline bool fuzz_is_region(const uint8_t *descriptor) {
    return descriptor[20] != 0 &&
           fuzz_number(descriptor + 8) <= UINT64_MAX - fuzz_number(descriptor);
}

// Counts an input that the decoder accepted or refused.
void fuzz_count(bool accepted);

#endif // FUZZ_H
