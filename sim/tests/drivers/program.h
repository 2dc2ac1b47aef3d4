// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// program.h -- what questions.c and library.c have in common

#ifndef DRIVERS_PROGRAM_H
#define DRIVERS_PROGRAM_H 1

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static inline void must(bool good, const char *what) {
    if (good)
        return;
    fprintf(stderr, "%s: %s failed: %s\n", program_invocation_short_name, what,
            strerror(errno));
    exit(1);
}

// The name of the file ends in the version of rdma-core.
static inline void print_library(void) {
    Dl_info info;
    must(dladdr((void *)(uintptr_t)ibv_open_device, &info) != 0, "dladdr()");
    char *const path = realpath(info.dli_fname, NULL);
    printf("# %s\n", path);
    free(path);
}

// Of connect.c; for the numbers of two queue pairs.
void connect_iwarp(uint32_t qp_num, uint32_t peer_num);

#endif // DRIVERS_PROGRAM_H
