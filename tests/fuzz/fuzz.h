// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// fuzz.h -- what the fuzz targets share: expectations, a log function that reads its arguments,
// and the proof that a run reached both outcomes.

#ifndef FUZZ_H
#define FUZZ_H 1

#include <stdbool.h>
#include <stdint.h>

#include "librpma.h"

// Aborts, which libFuzzer reports with the input.
#define FUZZ_EXPECT(condition) fuzz_expect(condition, #condition)
void fuzz_expect(bool holds, const char *condition);

// The decoder took the input, or refused it.
void fuzz_count(bool accepted);

#endif // FUZZ_H
