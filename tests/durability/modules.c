// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// modules.c -- the programs of a test

#include "modules.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

__attribute__((noreturn)) static void exit_with_error(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

static void *load(const char *file) {
    void *const handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        exit_with_error(file, dlerror());
    return handle;
}

// The loader loads a file only once. The descriptor of the copy remains open, so that no other
// copy has its name.
static void *load_copy(const char *file) {
    char name[32];
    struct stat status;
    const int from = open(file, O_RDONLY | O_CLOEXEC), to = memfd_create(file, MFD_CLOEXEC);
    if (from < 0 || to < 0 || fstat(from, &status) ||
        sendfile(to, from, NULL, (size_t)status.st_size) != status.st_size)
        exit_with_error(file, "cannot be copied");
    close(from);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", to);
    return load(name);
}

// Saves the writable segments. Modules are linked without RELRO, so that these stay writable.
static void save_variables(void *handle, struct variables *variables) {
    struct link_map *map;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map))
        exit_with_error("dlinfo", dlerror());
    char *const base = (char *)map->l_addr;
    const ElfW(Ehdr) *const header = (const void *)base;
    const ElfW(Phdr) *segment = (const void *)(base + header->e_phoff);
    for (const ElfW(Phdr) *const end = segment + header->e_phnum; segment < end; segment++) {
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W))
            continue;
        *variables = (struct variables){base + segment->p_vaddr, malloc(segment->p_memsz),
                                        segment->p_memsz};
        memcpy(variables->first_values, variables->begin, variables->size);
        variables++;
    }
}

// A module finds its libraries from its own directory, also if its name is a symbolic link, but
// a copy does not. Therefore both are loaded.
struct module load_module(const char *name) {
    char path[4096];
    struct module module = {0};
    const char *const directory = getenv("MODULES");
    snprintf(path, sizeof(path), "%s/%s.so", directory ? directory : ".", name);
    char *const file = realpath(path, NULL);
    if (!file)
        exit_with_error(path, "there is no such module");
    load(file);
    void *const handle = load_copy(file);
    free(file);
    *(void **)&module.main = dlsym(handle, "main");
    if (!module.main)
        exit_with_error(path, dlerror());
    save_variables(handle, module.variables);
    return module;
}

int run_module(const struct module *module, int argc, char *argv[]) {
    for (const struct variables *each = module->variables; each->size > 0; each++)
        memcpy(each->begin, each->first_values, each->size);
    return module->main(argc, argv);
}

bool explore_and_print(const struct rdma_sim_test *test, int names, char *argv[]) {
    struct timespec begin, end;
    struct rdma_sim_test chosen = *test;
    char *const *const more = argv + 1 + names;
    const uint64_t schedules = more[0] ? strtoull(more[0], NULL, 10) : 0;
    if (schedules)
        chosen.schedules = schedules;
    if (more[0] && more[1])
        chosen.options.seed = strtoull(more[1], NULL, 10);
    if (getenv("SHORTENING"))
        chosen.shortening = (unsigned)atoi(getenv("SHORTENING"));
    clock_gettime(CLOCK_MONOTONIC, &begin);
    const int found = rdma_sim_explore(&chosen);
    clock_gettime(CLOCK_MONOTONIC, &end);
    for (int i = 1; i <= names; i++)
        printf("%s%s", argv[i], i < names ? " " : ": ");
    printf("%s, %.1f s\n", found ? rdma_sim_error() : "nothing found",
           (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
    return found == 0;
}

int64_t now_ms(void) {
    struct timespec now;
    rdma_sim_clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool is_name_of(const char *known, const char *name, int *form) {
    const size_t length = strlen(known);
    *form = known[length - 1] == '-' && !strncmp(name, known, length) ? atoi(name + length) : 0;
    return *form > 0 || !strcmp(name, known);
}
