// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// main.c -- runs all cases of conformance.c or of exchange.c; with "each", every case in a
// process of its own, so that a step that a device refuses ends one case

#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../tests/unit/fakes/fake.h"

// Defined only by the fakes.
#pragma weak fake_reset
#pragma weak fake_device
#pragma weak fake_cm_event
#pragma weak sim_find_profile

static void deliver(int fd, const void *data, uint8_t length) {
    fake_cm_event(fd, RDMA_CM_EVENT_CONNECT_REQUEST, data, length);
}

// Selects the profile of the fakes' device: rdma_rxe or siw.
static void prepare_fakes(const char *device) {
    fake_reset();
    fake_device()->pmem = false;
    fake_device()->profile = *sim_find_profile(device);
}

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
    const bool as_siw = fake_reset && argc == 3 && strcmp(argv[2], "siw") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 3 && !fake_reset && strcmp(argv[2], "each") == 0)
        return run_each(argv[1]);
    if (fake_reset) {
        prepare_fakes(as_siw ? "siw" : "rxe");
        conformance_deliver = deliver;
    }
    if (argc != 2 + as_siw || !CASES.prepare(argv[1])) {
        fprintf(stderr,
                "usage: %s ADDRESS [each] (of an RDMA device of this machine)\n"
                "       conformance-fakes ADDRESS [siw]\n",
                CASES.name);
        return 2;
    }
    for (size_t i = 0; i < CASES.count; i++)
        CASES.run(i);
    return 0;
}
