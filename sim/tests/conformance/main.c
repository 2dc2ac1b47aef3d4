// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// main.c -- runs all cases of conformance.c or of exchange.c; with "each", every case in a
// process of its own, so that a step that a device refuses ends one case

#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int run_each(const char *address) {
    for (size_t i = 0; i < CASES.count; i++) {
        if (fork() == 0) {
            if (CASES.prepare(address))
                CASES.run(i);
            exit(EXIT_SUCCESS);
        }
        wait(NULL);
    }
    return EXIT_SUCCESS;
}

int main(int argc, char *argv[]) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && strcmp(argv[2], "each") == 0)
        return run_each(argv[1]);
    if (argc != 2 || !CASES.prepare(argv[1])) {
        fprintf(stderr, "usage: %s ADDRESS [each] (of an RDMA device of this machine)\n",
                CASES.name);
        return 2;
    }
    for (size_t i = 0; i < CASES.count; i++)
        CASES.run(i);
    return 0;
}
