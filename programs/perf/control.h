// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// control.h -- the connection that carries messages between the two sides

#ifndef RPMA_PERF_CONTROL_H
#define RPMA_PERF_CONTROL_H 1

#include "link.h"
#include "memory.h"
#include "message.h"

struct control {
    struct link link;
    struct rpma_cq *cq;
    int cq_fd;
    struct memory memory; // a message to receive, and one to send
    struct rpma_mr_local *mr;
    struct message in;  // the last one that was taken
    struct message out; // the one to send
    uint64_t heard;     // when the other side, or its device, said something
    bool is_beating;
};

// Makes the connection of a request, with a receive before it is up. The request is gone.
bool control_open(struct control *control, struct rpma_peer *peer,
                  struct rpma_conn_req **request);
void control_close(struct control *control);

// Sends what stands in control->out.
bool control_send(struct control *control);

enum heard { HEARD_NOTHING, HEARD_MESSAGE, HEARD_END };
// Takes a message into control->in if one is there; never waits.
enum heard control_take(struct control *control);

// For every turn of a wait: asks the other side's device for a sign of life at intervals.
// False: there is none.
bool control_beat(struct control *control);
#define BEAT_MS 5000

#endif
