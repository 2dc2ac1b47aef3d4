// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.h -- counts allocations and mappings of the process since the last reset

#ifndef MEMORY_H
#define MEMORY_H 1

#include <stddef.h>

extern struct memory {
    unsigned allocations; // freed or not
    unsigned mappings;    // calls of mmap()
} memory;

void memory_reset(void);
size_t memory_bytes(void); // requested and not freed yet

#endif /* MEMORY_H */
