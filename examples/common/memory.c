// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.c -- persistent or plain memory, and data that can be checked

#include "common.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define LINE_SIZE ((size_t)32)
#define LINE_FORMAT "librpma example %02u, line %06zu\n"

static void persist_nothing(const void *ptr, size_t size) {
    (void)ptr;
    (void)size;
}

static struct memory open_plain_memory(size_t size) {
    void *ptr = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ptr == MAP_FAILED)
        fail("cannot allocate %zu bytes of memory: %s", size, strerror(errno));
    return (struct memory){.ptr = ptr, .size = size, .persist = persist_nothing, .fd = -1};
}

#ifdef USE_LIBPMEM2
#include <fcntl.h>
#include <libpmem2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// A file that cannot be used gets its old size again, or is removed if it did not exist.
struct file {
    int fd;
    bool was_created;
    off_t old_size; // -1: its size was not changed
};

static void restore_file(const struct file *opened, const char *file) {
    if (opened->old_size >= 0)
        (void)!ftruncate(opened->fd, opened->old_size);
    if (opened->was_created)
        unlink(file);
}

static struct file open_file(const char *file, size_t size) {
    struct file opened = {.old_size = -1};
    struct stat status;
    opened.fd = open(file, O_RDWR | O_CLOEXEC);
    if (opened.fd < 0 && errno == ENOENT) {
        opened.fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        opened.was_created = opened.fd >= 0;
    }
    if (opened.fd < 0 || fstat(opened.fd, &status))
        fail("cannot open %s: %s", file, strerror(errno));
    if (S_ISREG(status.st_mode) && (size_t)status.st_size < size) {
        opened.old_size = status.st_size;
        int error = posix_fallocate(opened.fd, 0, (off_t)size);
        if (error) {
            restore_file(&opened, file);
            fail("cannot make %s %zu bytes large: %s", file, size, strerror(error));
        }
    }
    return opened;
}

// The granularity is the unit in which stores become persistent: a page means no PMem.
static struct pmem2_map *map_file(const struct file *opened, const char *file) {
    struct pmem2_source *source;
    struct pmem2_config *config;
    struct pmem2_map *map;
    if (pmem2_source_from_fd(&source, opened->fd) || pmem2_config_new(&config) ||
        pmem2_config_set_required_store_granularity(config, PMEM2_GRANULARITY_CACHE_LINE) ||
        pmem2_map_new(&map, config, source)) {
        restore_file(opened, file);
        fail("cannot map %s as persistent memory: %s", file, pmem2_errormsg());
    }
    pmem2_config_delete(&config);
    pmem2_source_delete(&source);
    return map;
}

// A granularity of a byte means that visible stores are persistent: the platform preserves its
// caches (eADR). A result that the environment forces on libpmem2 does not prove this.
static bool caches_survive(struct pmem2_map *map) {
    return pmem2_map_get_store_granularity(map) == PMEM2_GRANULARITY_BYTE &&
           !getenv("PMEM2_FORCE_GRANULARITY");
}

static struct memory open_persistent_memory(const char *file, size_t size) {
    struct file opened = open_file(file, size);
    struct pmem2_map *map = map_file(&opened, file);
    struct memory memory = {.ptr = pmem2_map_get_address(map),
                            .size = pmem2_map_get_size(map),
                            .is_pmem = true,
                            .direct_write = caches_survive(map),
                            .persist = pmem2_get_persist_fn(map),
                            .map = map,
                            .fd = opened.fd};
    if (memory.size < size)
        fail("%s has %zu bytes, %zu are needed", file, memory.size, size);
    return memory;
}

static void close_persistent_memory(const struct memory *memory) {
    struct pmem2_map *pmem2_map = memory->map;
    if (pmem2_map_delete(&pmem2_map))
        fail("cannot unmap the persistent memory: %s", pmem2_errormsg());
    close(memory->fd);
}

// A lock of the open file description (fcntl(2)): the kernel removes it when the last
// descriptor is closed, at the latest when the process exits.
void lock_memory(const struct memory *memory, const char *file, size_t begin, size_t size) {
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)begin, .l_len = (off_t)size};
    if (memory->fd < 0 || !fcntl(memory->fd, F_OFD_SETLK, &lock))
        return;
    if (errno == EAGAIN || errno == EACCES)
        fail("another process uses bytes %zu to %zu of %s", begin, begin + size - 1, file);
    fail("cannot lock %s: %s", file, strerror(errno));
}
#else
static struct memory open_persistent_memory(const char *file, size_t size) {
    (void)size;
    fail("cannot map %s: this program was built without libpmem2", file);
}

static void close_persistent_memory(const struct memory *memory) {
    (void)memory;
}

void lock_memory(const struct memory *memory, const char *file, size_t begin, size_t size) {
    (void)memory, (void)file, (void)begin, (void)size;
}
#endif

struct memory open_memory(const char *file, size_t size) {
    return file ? open_persistent_memory(file, size) : open_plain_memory(size);
}

void close_memory(struct memory *memory) {
    if (memory->map)
        close_persistent_memory(memory);
    else
        munmap(memory->ptr, memory->size);
    memory->ptr = NULL;
}

const char *memory_kind(const struct memory *memory) {
    return memory->is_pmem ? "persistent memory" : "plain memory";
}

const char *describe_persistence(bool direct_write) {
    return direct_write ? "persistent"
                        : "visible and not known to be persistent (see example 09)";
}

bool has_direct_write(const struct arguments *args, const struct memory *memory) {
    return memory->is_pmem && (args->direct_write || memory->direct_write);
}

static size_t make_line(char line[LINE_SIZE + 1], size_t number_of_line, size_t room,
                        unsigned number) {
    snprintf(line, LINE_SIZE + 1, LINE_FORMAT, number % 100, number_of_line % 1000000);
    return room < LINE_SIZE ? room : LINE_SIZE;
}

void fill_block(void *ptr, size_t size, unsigned number) {
    char line[LINE_SIZE + 1];
    for (size_t done = 0; done < size; done += LINE_SIZE)
        memcpy((char *)ptr + done, line,
               make_line(line, done / LINE_SIZE + 1, size - done, number));
}

// The offset of the first wrong line, or size.
static size_t find_wrong_line(const void *ptr, size_t size, unsigned number) {
    char line[LINE_SIZE + 1];
    for (size_t done = 0; done < size; done += LINE_SIZE) {
        size_t part = make_line(line, done / LINE_SIZE + 1, size - done, number);
        if (memcmp((const char *)ptr + done, line, part))
            return done;
    }
    return size;
}

bool has_block(const void *ptr, size_t size, unsigned number) {
    return find_wrong_line(ptr, size, number) == size;
}

void check_block(const void *ptr, size_t size, unsigned number) {
    size_t wrong = find_wrong_line(ptr, size, number);
    if (wrong < size)
        fail("the data is wrong in the %zu bytes at offset %zu", LINE_SIZE, wrong);
}

uint32_t checksum(const void *ptr, size_t size) {
    const unsigned char *bytes = ptr;
    uint32_t sum = 2166136261U;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * 16777619U;
    return sum;
}
