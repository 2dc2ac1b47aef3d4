// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conformance.c -- runs the cases of sim/tests/conformance over the fakes, as rdma_rxe or as
// siw

#include <stdio.h>

#include "../../../sim/tests/conformance/cases.h"
#include "../fakes/fake.h"

static void deliver(int fd, const void *data, uint8_t length) {
    fake_cm_event(fd, RDMA_CM_EVENT_CONNECT_REQUEST, data, length);
}

int main(int argc, char *argv[]) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    fake_reset();
    fake_device()->pmem = false;
    fake_device()->profile = *sim_find_profile(argc == 3 ? argv[2] : "rxe");
    conformance_deliver = deliver;
    if (argc != 3 || !conformance_cases.prepare(argv[1])) {
        fprintf(stderr, "usage: conformance-fakes ADDRESS rxe|siw\n");
        return 2;
    }
    for (size_t i = 0; i < conformance_cases.count; i++)
        conformance_cases.run(i);
    return 0;
}
