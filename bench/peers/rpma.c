// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rpma.c -- a write and its completion, with the functions of librpma 1.3.0; runs on the
// original too
//
//   rpma server ADDRESS PORT        offers memory to everybody
//   rpma writer ADDRESS PORT TIMES  writes one block at a time, for callgrind

#include "scene.h"
#include "side.h"

static struct side side;
static struct target target;

// Takes no events: a connection that has ended is of no concern here.
static void serve_everybody(char **argv) {
    side = open_side(argv[0], argv[1], RPMA_UTIL_IBV_CONTEXT_LOCAL);
    struct rpma_ep *endpoint;
    must(rpma_ep_listen(side.peer, side.address, side.port, &endpoint), "rpma_ep_listen");
    say("listening");
    for (;;)
        (void)accept_next(&side, endpoint, NULL, 0);
}

// ---- a write and its completion ------------------------------------------------------------

static COUNTED void counted_write(void) {
    must(rpma_write(target.conn, target.remote, 0, side.mr, 0, WRITE_BYTES,
                    RPMA_F_COMPLETION_ALWAYS, NULL),
         "rpma_write");
}

static COUNTED void counted_completion(void) {
    struct ibv_wc wc;
    must(rpma_cq_get_wc(target.cq, 1, &wc, NULL), "rpma_cq_get_wc");
    if (wc.status != IBV_WC_SUCCESS)
        give_up(ibv_wc_status_str(wc.status));
}

static void write_and_wait(void) {
    counted_write();
    must(rpma_cq_wait(target.cq), "rpma_cq_wait"); // requests the next event itself
    counted_completion();
}

static void write_blocks(char **argv) {
    side = open_side(argv[0], argv[1], RPMA_UTIL_IBV_CONTEXT_REMOTE);
    target = connect_to_target(&side, NULL);
    run_laps(write_and_wait, number(argv[2]));
}

int main(int argc, char **argv) {
    static const struct scene scenes[] = {
        {"server", 2, 2, serve_everybody}, {"writer", 3, 3, write_blocks}, {0}};
    return run_scene(scenes, argc, argv);
}
