// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// connections.c -- the costs of many concurrent connections, on the client's side

#include "common.h"

#include <stdlib.h>
#include <unistd.h>

// The number of registered regions according to the kernel.
static double regions(void) {
    char command[128];
    double count = 0;
    snprintf(command, sizeof(command), "rdma resource show mr 2>&1 | grep -cw 'pid %d'",
             (int)getpid());
    FILE *pipe = popen(command, "r");
    if (pipe == NULL || fscanf(pipe, "%lf", &count) != 1 || count == 0)
        fail("'rdma resource show mr' does not show this program's own region");
    pclose(pipe);
    return count;
}

void measure_connections(char **argv) {
    const struct side side = open_side(argv[0], argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE);
    const unsigned long connection_count = number(argv[2]);
    struct rpma_conn **conns = calloc(connection_count, sizeof(*conns));
    if (conns == NULL)
        fail("out of memory");
    disconnect(connect_to(&side, NULL)); // warm-up: excludes one-time costs

    const double resident_before = resident_kib();
    const double descriptors_before = descriptors();
    const double regions_before = regions();
    double start = seconds(), cpu = cpu_seconds();
    for (unsigned long i = 0; i < connection_count; i++)
        conns[i] = connect_to(&side, NULL);
    print("setups per second", (double)connection_count / (seconds() - start));
    print("CPU us per setup", (cpu_seconds() - cpu) * 1e6 / (double)connection_count);
    print("resident KiB", resident_kib() - resident_before);
    print("descriptors", descriptors() - descriptors_before);
    print("regions", regions() - regions_before);

    start = seconds();
    for (unsigned long i = 0; i < connection_count; i++)
        disconnect(conns[i]);
    print("teardowns per second", (double)connection_count / (seconds() - start));
    free(conns);
}
