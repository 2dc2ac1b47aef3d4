// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// modules.h -- loads the programs of a test
//
// A program is a module, because each needs its own copy of examples/common/, with its
// variables.

#ifndef MODULES_H
#define MODULES_H 1

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*main_function)(int, char **);

// Returns the main() of a module in the directory $MODULES. A module finds its libraries from
// its own directory, also if its name is a symbolic link.
static inline main_function find_main(const char *module) {
    char path[4096];
    const char *const directory = getenv("MODULES");
    snprintf(path, sizeof(path), "%s/%s.so", directory ? directory : ".", module);
    char *const file = realpath(path, NULL);
    void *handle = dlopen(file ? file : path, RTLD_NOW | RTLD_LOCAL);
    main_function found = NULL;
    free(file);
    if (handle)
        *(void **)&found = dlsym(handle, "main");
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    return found;
}

#endif // MODULES_H
