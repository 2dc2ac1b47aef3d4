// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// connections.c -- the costs of many connections at once, on the side that makes them

#include "side.h"

#include <stdlib.h>
#include <unistd.h>

// The number of registered regions, as the kernel lists them.
static double regions(void) {
    char command[128];
    double count = 0;
    snprintf(command, sizeof(command), "rdma resource show mr 2>&1 | grep -cw 'pid %d'",
             (int)getpid());
    FILE *pipe = popen(command, "r");
    if (pipe == NULL || fscanf(pipe, "%lf", &count) != 1 || count == 0)
        give_up("'rdma resource show mr' does not show this program's own region");
    pclose(pipe);
    return count;
}

void measure_connections(char **argv) {
    const struct side side = open_side(argv[0], argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE);
    const unsigned long many = number(argv[2]);
    struct rpma_conn **conns = calloc(many, sizeof(*conns));
    if (conns == NULL)
        give_up("out of memory");
    leave(connect_to(&side, NULL)); // warm-up: everything that happens only once

    const double resident_before = resident_kib();
    const double descriptors_before = descriptors();
    const double regions_before = regions();
    double start = seconds(), cpu = cpu_seconds();
    for (unsigned long i = 0; i < many; i++)
        conns[i] = connect_to(&side, NULL);
    print("setups per second", (double)many / (seconds() - start));
    print("CPU us per setup", (cpu_seconds() - cpu) * 1e6 / (double)many);
    print("resident KiB", resident_kib() - resident_before);
    print("descriptors", descriptors() - descriptors_before);
    print("regions", regions() - regions_before);

    start = seconds();
    for (unsigned long i = 0; i < many; i++)
        leave(conns[i]);
    print("teardowns per second", (double)many / (seconds() - start));
    free(conns);
}
