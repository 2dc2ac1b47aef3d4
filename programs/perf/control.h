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
    struct memory memory; // room for a message to receive and one to send
    struct rpma_mr_local *mr;
    struct message in;  // the last message received
    struct message out; // the message to send
    uint64_t heard;     // when the last message or sign of life arrived
    bool is_beating;
};

// Posts a receive and establishes the connection of a request. Consumes the request.
bool control_open(struct control *control, struct rpma_peer *peer,
                  struct rpma_conn_req **request);
void control_close(struct control *control);

// Sends control->out.
bool control_send(struct control *control);

enum heard { HEARD_NOTHING, HEARD_MESSAGE, HEARD_END };
// Takes a message into control->in if one has arrived; never waits.
enum heard control_take(struct control *control);

// Called in every turn of a wait: at intervals it reads from the other side's device as a sign
// of life. Returns false if there is no answer.
bool control_beat(struct control *control);
#define BEAT_MS 5000

#endif
