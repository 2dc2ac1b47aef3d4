// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// copies.c -- copies of programs, each with variables of its own

#include "copies.h"

#include "modules.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
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
static void *load_copied_file(const char *file) {
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
static void save_variables(void *handle, struct copy *copy) {
    struct link_map *map;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map))
        exit_with_error("dlinfo", dlerror());
    char *const base = (char *)map->l_addr;
    const ElfW(Ehdr) *const header = (const void *)base;
    const ElfW(Phdr) *const segments = (const void *)(base + header->e_phoff);
    struct variables *variables = copy->variables;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type != PT_LOAD || !(segments[i].p_flags & PF_W))
            continue;
        if (variables == copy->variables + sizeof(copy->variables) / sizeof(*variables))
            exit_with_error("a module", "has too many segments");
        *variables = (struct variables){base + segments[i].p_vaddr, malloc(segments[i].p_memsz),
                                        segments[i].p_memsz};
        if (!variables->first_values)
            exit_with_error("a module", "no memory for its variables");
        memcpy(variables->first_values, variables->begin, variables->size);
        variables++;
    }
}

struct copy load_copy(const char *module) {
    char file[4096];
    struct copy copy = {0};
    find_file(module, file);
    load(file); // finds the libraries from its directory, which a copy does not have
    void *const handle = load_copied_file(file);
    *(void **)&copy.run = dlsym(handle, "run_program");
    if (!copy.run)
        exit_with_error(module, dlerror());
    save_variables(handle, &copy);
    return copy;
}

void reset_copy(const struct copy *copy) {
    for (const struct variables *each = copy->variables;
         each < copy->variables + sizeof(copy->variables) / sizeof(*each) && each->size; each++)
        memcpy(each->begin, each->first_values, each->size);
}
