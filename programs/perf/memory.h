// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.h -- the source or target memory of transfers

#ifndef RPMA_PERF_MEMORY_H
#define RPMA_PERF_MEMORY_H 1

#include <stdbool.h>
#include <stddef.h>

struct memory {
    void *ptr;
    size_t size;
    const char *kind; // "dram", "file", "fsdax" or "devdax"
    bool is_persistent;
};

// Allocates zeroed DRAM.
bool memory_allocate(struct memory *memory, size_t size);
// Maps all of a file or of a device DAX, for PROT_READ alone or with PROT_WRITE.
bool memory_map(struct memory *memory, const char *path, int protection);
void memory_free(struct memory *memory);

#endif
