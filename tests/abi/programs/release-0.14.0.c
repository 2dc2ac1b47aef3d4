// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// release-0.14.0.c -- a program of release 0.14.0: knows RPMA_CONN_UNREACHABLE.

#include "atomic_write.h"
#include "wc.h"

// No device can be made to cause this event, so the test on a device omits it.
static void miss(struct life *life) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    struct rpma_conn_req *req = NULL;
    struct rpma_conn *conn = NULL;
    if (life->on_device)
        return;
    MUST(rpma_conn_req_new(life->peer, life->address, "1", NULL, &req));
    MUST(rpma_conn_req_connect(&req, NULL, &conn));
    loopback_unreachable(life_fd(conn));
    MUST(rpma_conn_next_event(conn, &event));
    CHECK(event == RPMA_CONN_UNREACHABLE);
    MUST(rpma_conn_delete(&conn));
}

int main(int argc, char *argv[]) {
    struct life life;
    life_open(&life, argc, argv);
    life_connect(&life, NULL, &life);
    life_exchange(&life, take_wc, &life);
    life_write_8(&life, atomic_write, take_wc);
    miss(&life);
    life_close(&life);
    return 0;
}
