// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// early.c -- a library whose constructor runs before that of the preloaded library: prints the
// name of the host, the index of its interface, and whether its device has a directory

#include <net/if.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((constructor)) static void print_host(void) {
    char name[64] = "";
    gethostname(name, sizeof(name));
    printf("%s %u %d\n", name, if_nametoindex("sim0"),
           access("/sys/class/infiniband/rxe0", F_OK));
    fflush(stdout);
}
