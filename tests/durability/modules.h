// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// modules.h -- loads the programs of a test
//
// A program is a module, because each needs its own copy of examples/common/, with its
// variables.

#ifndef MODULES_H
#define MODULES_H 1

#include <dlfcn.h>
#include <rdma-sim.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int (*main_function)(int, char **);

// Finds the file of a module in the directory $MODULES. A module finds its libraries from its
// own directory, also if its name is a symbolic link.
static inline void find_file(const char *module, char file[4096]) {
    char path[4096];
    const char *const directory = getenv("MODULES");
    snprintf(path, sizeof(path), "%s/%s.so", directory ? directory : ".", module);
    if (!realpath(path, file))
        snprintf(file, sizeof(path), "%s", path);
}

// Returns the main() of a module.
static inline main_function find_main(const char *module) {
    char file[4096];
    main_function found = NULL;
    find_file(module, file);
    void *const handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (handle)
        *(void **)&found = dlsym(handle, "main");
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    return found;
}

// Runs a test, and prints its finding and its time. Returns false if it has a finding.
static inline bool explore_and_print(const struct rdma_sim_test *test, const char *name) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    const int found = rdma_sim_explore(test);
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%s: %s, %.1f s\n", name, found ? rdma_sim_error() : "nothing found",
           (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
    return found == 0;
}

#endif // MODULES_H
