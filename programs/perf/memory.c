// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.c -- the source or target memory of transfers

#include "memory.h"

#include "failure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

bool memory_allocate(struct memory *memory, size_t size) {
    void *ptr = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (ptr == MAP_FAILED)
        return fail("cannot allocate %zu bytes: %s", size, strerror(errno));
    *memory = (struct memory){.ptr = ptr, .size = size, .kind = "dram"};
    return true;
}

// Only sysfs has the size of a device DAX.
static bool device_size(const struct stat *status, size_t *size) {
    char path[80];
    snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/size", major(status->st_rdev),
             minor(status->st_rdev));
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is_read = fscanf(file, "%zu", size) == 1;
    fclose(file);
    return is_read;
}

static bool find_size(int fd, struct memory *memory, const char *path) {
    struct stat status;
    if (fstat(fd, &status))
        return fail("%s: %s", path, strerror(errno));
    if (S_ISREG(status.st_mode)) {
        memory->size = (size_t)status.st_size;
    } else if (S_ISCHR(status.st_mode) && device_size(&status, &memory->size)) {
        memory->kind = "devdax";
        memory->is_persistent = true;
    } else {
        return fail("%s is neither a file nor a device DAX", path);
    }
    return memory->size ? true : fail("%s is empty: its size is what can be used", path);
}

// MAP_SYNC works on FS-DAX only; elsewhere the mapping is of the page cache.
static bool map(int fd, struct memory *memory, const char *path, int protection) {
    if (!memory->kind) {
        memory->ptr =
            mmap(NULL, memory->size, protection, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
        memory->is_persistent = memory->ptr != MAP_FAILED;
        memory->kind = memory->is_persistent ? "fsdax" : "file";
        if (memory->is_persistent)
            return true;
    }
    memory->ptr = mmap(NULL, memory->size, protection, MAP_SHARED, fd, 0);
    return memory->ptr != MAP_FAILED || fail("cannot map %s: %s", path, strerror(errno));
}

bool memory_map(struct memory *memory, const char *path, int protection) {
    struct memory mapped = {0};
    int fd = open(path, (protection & PROT_WRITE ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    if (fd < 0)
        return fail("%s: %s", path, strerror(errno));
    bool is_mapped = find_size(fd, &mapped, path) && map(fd, &mapped, path, protection);
    close(fd);
    if (is_mapped)
        *memory = mapped;
    return is_mapped;
}

void memory_free(struct memory *memory) {
    if (memory->ptr)
        munmap(memory->ptr, memory->size);
    memory->ptr = NULL;
}
