// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// pattern.h -- data that depends on its connection, operation and position

#ifndef RPMA_PERF_PATTERN_H
#define RPMA_PERF_PATTERN_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Every byte depends on its position, on the connection and on the number of the operation.
void pattern_fill(void *memory, size_t size, uint64_t connection, uint64_t number);

// The position of the first wrong byte, or size.
size_t pattern_check(const void *memory, size_t size, uint64_t connection, uint64_t number);

// The position of the first byte that is not 0, or size.
size_t zero_check(const void *memory, size_t size);

#endif
