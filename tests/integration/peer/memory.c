// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// memory.c -- commands for memory, its content and its registration

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peer.h"

#define PATTERN_WORD 8

static uint64_t pattern_word(uint64_t seed, uint64_t index) {
    uint64_t mixed = (seed + 1) * 0x9e3779b97f4a7c15ULL + index * 0xbf58476d1ce4e5b9ULL;
    mixed = (mixed ^ (mixed >> 29)) * 0x94d049bb133111ebULL;
    return mixed ^ (mixed >> 32);
}

void pattern_fill(char *bytes, size_t count, uint64_t seed) {
    for (size_t done = 0; done < count; done += PATTERN_WORD) {
        uint64_t word = pattern_word(seed, done / PATTERN_WORD);
        memcpy(bytes + done, &word, count - done < PATTERN_WORD ? count - done : PATTERN_WORD);
    }
}

size_t pattern_check(const char *bytes, size_t count, uint64_t seed) {
    for (size_t done = 0; done < count; done += PATTERN_WORD) {
        uint64_t word = pattern_word(seed, done / PATTERN_WORD);
        const char *wanted = (const char *)&word;
        for (size_t i = 0; i < PATTERN_WORD && done + i < count; i++)
            if (bytes[done + i] != wanted[i])
                return done + i;
    }
    return count;
}

static int system_failed(const char *call) {
    reply("call=%s errno=%d", call, errno);
    return ERR_SYSTEM;
}

/* Maps a file on a DAX file system with MAP_SYNC, which the kernel refuses for mappings that
 * are not DAX. */
static int map_file(const char *path, size_t size, bool sync, char **base) {
    struct stat status;
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    if (fd < 0 || fstat(fd, &status) != 0)
        return system_failed("open");
    if (S_ISREG(status.st_mode) && (size_t)status.st_size < size &&
        ftruncate(fd, (off_t)size) != 0)
        return system_failed("ftruncate");
    int flags = sync && S_ISREG(status.st_mode) ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
    *base = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    close(fd);
    return *base == MAP_FAILED ? system_failed("mmap") : 0;
}

static struct memory *the_memory(const struct args *args, const char *key) {
    struct memory *memory = &world.memory[arg_slot(args, key, MAX_REGIONS)];
    if (memory->base == NULL)
        bad_script("%s: no such memory", args->verb);
    return memory;
}

static char *the_range(const struct args *args, size_t *len) {
    struct memory *memory = the_memory(args, "mr");
    uint64_t offset = arg_number_or(args, "off", 0);
    *len = arg_number(args, "len");
    if (offset + *len > memory->size)
        bad_script("%s: outside the memory", args->verb);
    return memory->base + offset;
}

static int do_memory(const struct args *args) {
    struct memory *memory = &world.memory[arg_slot(args, "mr", MAX_REGIONS)];
    const char *file = arg_text_or(args, "file", NULL);
    size_t size = arg_number(args, "size");
    char *base = NULL;
    int ret = 0;
    if (file != NULL)
        ret = map_file(file, size, arg_number_or(args, "sync", 1) != 0, &base);
    else
        base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ret == 0 && base == MAP_FAILED)
        return system_failed("mmap");
    if (ret == 0)
        *memory = (struct memory){base, size};
    return ret;
}

/* The descriptor of a region. */
static int do_describe(const struct args *args) {
    const struct rpma_mr_local *mr = world.mr[arg_slot(args, "mr", MAX_REGIONS)];
    unsigned char descriptor[64];
    size_t size = 0;
    int ret = rpma_mr_get_descriptor_size(mr, &size);
    if (ret == 0 && size <= sizeof(descriptor))
        ret = rpma_mr_get_descriptor(mr, descriptor);
    if (ret == 0)
        reply_bytes("desc", descriptor, size);
    return ret;
}

static int do_reg(const struct args *args) {
    struct memory *memory = the_memory(args, "mr");
    int ret =
        rpma_mr_reg(world.peer, memory->base + arg_number_or(args, "off", 0),
                    arg_number_or(args, "len", memory->size), (int)arg_number(args, "usage"),
                    &world.mr[arg_slot(args, "mr", MAX_REGIONS)]);
    return ret == 0 ? do_describe(args) : ret;
}

static int do_dereg(const struct args *args) {
    return rpma_mr_dereg(&world.mr[arg_slot(args, "mr", MAX_REGIONS)]);
}

static int do_advise(const struct args *args) {
    return rpma_mr_advise(world.mr[arg_slot(args, "mr", MAX_REGIONS)], 0,
                          arg_number(args, "len"), IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
                          IBV_ADVISE_MR_FLAG_FLUSH);
}

static int do_remote(const struct args *args) {
    struct rpma_mr_remote **remote = &world.remote[arg_slot(args, "rmr", MAX_REGIONS)];
    unsigned char descriptor[256];
    size_t count = arg_bytes(args, "desc", descriptor, sizeof(descriptor));
    size_t size = 0;
    int type = 0;
    int ret = rpma_mr_remote_from_descriptor(descriptor, count, remote);
    if (ret == 0)
        ret = rpma_mr_remote_get_size(*remote, &size);
    if (ret == 0)
        ret = rpma_mr_remote_get_flush_type(*remote, &type);
    if (ret == 0)
        reply("size=%zu flush=%d", size, type);
    return ret;
}

static int do_remote_delete(const struct args *args) {
    return rpma_mr_remote_delete(&world.remote[arg_slot(args, "rmr", MAX_REGIONS)]);
}

static int do_fill(const struct args *args) {
    size_t len = 0;
    char *range = the_range(args, &len);
    pattern_fill(range, len, arg_number(args, "seed"));
    return 0;
}

static int do_set(const struct args *args) {
    size_t len = 0;
    char *range = the_range(args, &len);
    memset(range, (int)arg_number(args, "byte"), len);
    return 0;
}

static int do_check(const struct args *args) {
    size_t len = 0;
    const char *range = the_range(args, &len);
    size_t equal = pattern_check(range, len, arg_number(args, "seed"));
    if (equal == len)
        return 0;
    reply("at=%zu byte=0x%02x", equal, (unsigned char)range[equal]);
    return ERR_MISMATCH;
}

/* All bytes have one value, so nothing was written around the target. */
static int do_check_set(const struct args *args) {
    size_t len = 0;
    const char *range = the_range(args, &len);
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)range[i] != (unsigned char)arg_number(args, "byte")) {
            reply("at=%zu byte=0x%02x", i, (unsigned char)range[i]);
            return ERR_MISMATCH;
        }
    }
    return 0;
}

static int do_bytes(const struct args *args) {
    size_t len = 0;
    const char *range = the_range(args, &len);
    reply_bytes("bytes", range, len);
    return 0;
}

const struct command memory_commands[] = {
    {"memory", do_memory},
    {"reg", do_reg},
    {"describe", do_describe},
    {"dereg", do_dereg},
    {"advise", do_advise},
    {"remote", do_remote},
    {"remote-delete", do_remote_delete},
    {"fill", do_fill},
    {"set", do_set},
    {"check", do_check},
    {"check-set", do_check_set},
    {"bytes", do_bytes},
    {NULL, NULL},
};
