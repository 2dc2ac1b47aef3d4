// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.c -- replaces the allocator and mmap() of libc: counts each call and passes it on

// Otherwise the headers rename mmap() to mmap64().
#undef _FILE_OFFSET_BITS

#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LIVE_BLOCKS = 256 };

static struct {
    void *block;
    size_t size;
} live[LIVE_BLOCKS];
struct memory memory;

// The allocator of libc, under the names that remain when malloc() is replaced.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

void memory_reset(void) {
    memset(live, 0, sizeof(live));
    memory = (struct memory){0};
}

size_t memory_bytes(void) {
    size_t bytes = 0;
    for (unsigned i = 0; i < LIVE_BLOCKS; i++)
        bytes += live[i].size;
    return bytes;
}

static void *note(void *block, size_t size) {
    memory.allocations++;
    unsigned i = 0;
    while (i < LIVE_BLOCKS && live[i].block != NULL)
        i++;
    if (i == LIVE_BLOCKS)
        abort(); // more blocks than a connection can have
    live[i].block = block;
    live[i].size = block != NULL ? size : 0;
    return block;
}

static void forget(const void *block) {
    for (unsigned i = 0; i < LIVE_BLOCKS; i++)
        if (live[i].block == block)
            memset(&live[i], 0, sizeof(live[i]));
}

void *malloc(size_t size) {
    return note(__libc_malloc(size), size);
}

void *calloc(size_t count, size_t size) {
    return note(__libc_calloc(count, size), count * size);
}

void *realloc(void *block, size_t size) {
    forget(block);
    return note(__libc_realloc(block, size), size);
}

void free(void *block) {
    forget(block);
    __libc_free(block);
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset) {
    memory.mappings++;
    const long mapped = syscall(SYS_mmap, address, size, protection, flags, fd, offset);
    return mapped == -1 ? MAP_FAILED : (void *)mapped; // NOLINT(performance-no-int-to-ptr)
}

// The name of mmap() in a library that is built for large files.
void *mmap64(void *address, size_t size, int protection, int flags, int fd, off64_t offset) {
    return mmap(address, size, protection, flags, fd, offset);
}
