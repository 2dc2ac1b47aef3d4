// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.c -- the kind of memory that a path names

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "info.h"

/* Registering pins memory without on-demand paging, so only a part of large memory is tried. */
#define MAPPED_MAX ((size_t)64 << 20)

#ifndef STATX_ATTR_DAX
#define STATX_ATTR_DAX 0x00200000
#endif

__attribute__((noreturn, format(printf, 2, 3))) static void refuse(const char *path,
                                                                   const char *format, ...) {
    va_list values;
    va_start(values, format);
    (void)fprintf(stderr, "rpma-info: %s: ", path);
    (void)vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    exit(STATUS_NO_MEMORY);
}

static bool is_devdax(const struct stat *status) {
    char *link = text_of("/sys/dev/char/%u:%u/subsystem", major(status->st_rdev),
                         minor(status->st_rdev));
    char *subsystem = realpath(link, NULL);
    const bool found = subsystem != NULL && strcmp(strrchr(subsystem, '/'), "/dax") == 0;
    free(subsystem);
    free(link);
    return found;
}

/* Checks the type before the file is opened, because opening some devices has side effects. */
static void check_type(const char *path, struct stat *status) {
    if (stat(path, status) != 0 && errno == ENOENT)
        refuse(path, "there is no such file: make one, for example: fallocate -l 1M FILE");
    else if (stat(path, status) != 0)
        refuse(path, "%s", strerror(errno));
    else if (S_ISDIR(status->st_mode))
        refuse(path, "this is a directory: name a file in it");
    else if (S_ISBLK(status->st_mode))
        refuse(path, "this is a block device: name a file on it, or a device DAX (/dev/dax*)");
    else if (!S_ISREG(status->st_mode) && !(S_ISCHR(status->st_mode) && is_devdax(status)))
        refuse(path, "this is neither a file nor a device DAX (/dev/dax*)");
    else if (S_ISREG(status->st_mode) && status->st_size == 0)
        refuse(path, "the file is empty: give it a size, for example: fallocate -l 1M FILE");
}

static enum memory_kind kind_of(const struct memory *memory, int fd) {
    struct statfs system;
    struct statx file;
    if (fstatfs(fd, &system) != 0)
        return MEMORY_FILE;
    if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC)
        return MEMORY_TMPFS;
    if (system.f_type == HUGETLBFS_MAGIC)
        return MEMORY_HUGETLBFS;
    if (memory->map_sync || (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &file) == 0 &&
                             (file.stx_attributes & STATX_ATTR_DAX) != 0))
        return MEMORY_FSDAX;
    return MEMORY_FILE;
}

static void map_file(struct memory *memory, int fd, const struct stat *status) {
    const int access = PROT_READ | PROT_WRITE;
    struct statfs system;
    memory->size = (size_t)status->st_size;
    memory->alignment = (size_t)sysconf(_SC_PAGESIZE);
    if (fstatfs(fd, &system) == 0 && system.f_type == HUGETLBFS_MAGIC)
        memory->alignment = (size_t)system.f_bsize;
    memory->mapped = memory->size < MAPPED_MAX ? memory->size : MAPPED_MAX;
    memory->base = mmap(NULL, memory->mapped, access, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
    memory->map_sync = memory->base != MAP_FAILED;
    if (!memory->map_sync)
        memory->base = mmap(NULL, memory->mapped, access, MAP_SHARED, fd, 0);
    memory->kind = kind_of(memory, fd);
    if (memory->kind == MEMORY_FSDAX)
        look_at_dax(memory, "block", major(status->st_dev), minor(status->st_dev));
}

static void map_device(struct memory *memory, int fd, const struct stat *status) {
    memory->kind = MEMORY_DEVDAX;
    look_at_dax(memory, "char", major(status->st_rdev), minor(status->st_rdev));
    if (memory->size == 0 || memory->alignment == 0)
        refuse(memory->path,
               "the kernel does not say the size of this device DAX: is it enabled?");
    memory->mapped = memory->size < MAPPED_MAX ? memory->size : MAPPED_MAX;
    memory->mapped -= memory->mapped % memory->alignment;
    if (memory->mapped == 0)
        memory->mapped = memory->alignment;
    memory->base = mmap(NULL, memory->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

void map_memory(struct memory *memory, const char *path) {
    struct stat status;
    *memory = (struct memory){.path = path};
    check_type(path, &status);
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        refuse(path, "it does not open for reading and writing: %s", strerror(errno));
    if (S_ISREG(status.st_mode))
        map_file(memory, fd, &status);
    else
        map_device(memory, fd, &status);
    if (memory->base == MAP_FAILED)
        refuse(path, "it cannot be mapped: %s", strerror(errno));
    (void)close(fd);
}

void unmap_memory(const struct memory *memory) {
    (void)munmap(memory->base, memory->mapped);
}

void add_persistence(tree *parent, const char *key, const struct memory *memory) {
    static const char other[] = "use a file on FS-DAX or a device DAX";
    if (memory->kind == MEMORY_FILE)
        add_no(parent, key,
               text_of("what arrives lies in the page cache, and a power failure loses it"),
               text_of("%s, or have the target call msync(2)", other));
    else if (memory->kind == MEMORY_TMPFS || memory->kind == MEMORY_HUGETLBFS)
        add_no(parent, key, text_of("the file is in DRAM, and a power failure loses it"),
               text_of("%s", other));
    else if (memory->kind == MEMORY_FSDAX && !memory->map_sync)
        add_no(
            parent, key,
            text_of(
                "MAP_SYNC is refused, so a power failure may lose which blocks the file has"),
            text_of("mount a device of persistent memory (/dev/pmem*) with -o dax"));
    else if (memory->kind == MEMORY_DEVDAX && !memory->nvdimm)
        add_unknown(
            parent, key,
            text_of("the device belongs to no region of an NVDIMM; its memory may be DRAM"),
            text_of("ask who set up the machine; 'daxctl list' and 'cxl list' tell more"));
    else
        add_yes(parent, key);
}

void add_memory(tree *report, const struct memory *memory) {
    static const char *const kinds[] = {
        [MEMORY_FILE] = "file",           [MEMORY_TMPFS] = "tmpfs",
        [MEMORY_HUGETLBFS] = "hugetlbfs", [MEMORY_FSDAX] = "FS-DAX",
        [MEMORY_DEVDAX] = "device DAX",
    };
    tree *entry = add_object(report, "memory");
    add_text(entry, "path", "%s", memory->path);
    add_text(entry, "kind", "%s", kinds[memory->kind]);
    add_number(entry, "size", memory->size);
    add_number(entry, "tried_size", memory->mapped);
    add_number(entry, "alignment", memory->alignment);
    if (memory->kind == MEMORY_DEVDAX)
        add_null(entry, "map_sync");
    else
        add_bool(entry, "map_sync", memory->map_sync);
    if (memory->domain[0] != '\0')
        add_text(entry, "persistence_domain", "%s", memory->domain);
    else
        add_null(entry, "persistence_domain");
    add_persistence(entry, "persistent", memory);
    add_cxl(entry, memory);
}
