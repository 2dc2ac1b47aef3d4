// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.h -- counts allocations and mappings of the process since the last reset

#ifndef MEMORY_H
#define MEMORY_H 1

#include <stddef.h>

void memory_reset(void);
size_t memory_bytes(void);         // requested and not freed yet
unsigned memory_allocations(void); // freed or not
unsigned memory_mappings(void);    // calls of mmap()

#endif /* MEMORY_H */
