// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm.h -- objects of the fake of librdmacm.

#ifndef FAKE_CM_H
#define FAKE_CM_H 1

#include "internal.h"

struct fake_event_channel {
    struct fake_object object;
    struct rdma_event_channel channel;
    struct fake_queue queue; // of struct fake_cm_event
};

struct fake_id {
    struct fake_object object;
    struct rdma_cm_id id;
    struct fake_event_channel *channel; // NULL: synchronous
    struct fake_event_channel *own;     // of a synchronous ID
    unsigned unacked;                   // events taken and not acknowledged
    bool incoming, listening, answered; // answered: accepted or rejected
    bool asked;                         // connected, in the sense of rdma_connect()
    bool bound, resolved, routed;       // progress: the states of Linux 7.3, cma.c
    bool resolving, routing;            // asked for, on a channel
};

// The event as the library sees it; freed by its acknowledgement.
struct fake_cm_event_seen {
    struct rdma_cm_event event;
    unsigned char data[256];
};

struct fake_cm_event {
    struct fake_object object;
    struct fake_cm_event_seen *seen;
    struct fake_id *counted_on;
};

// Sizes of private data in the messages of InfiniBand: Linux 7.3, include/rdma/ib_cm.h, enum
// ib_cm_data_size. In a request, the addresses take 36 of the 92 bytes.
enum { FAKE_REQUEST_DATA = 56, FAKE_ACCEPT_DATA = 196, FAKE_REJECT_DATA = 148 };

struct fake_id *fake_find_id(struct rdma_cm_id *id, const char *call);
struct fake_event_channel *fake_open_event_channel(bool internal);
void fake_close_event_channel(struct fake_event_channel *channel);
struct fake_id *fake_new_id(struct fake_event_channel *channel);
void fake_move_events(struct fake_event_channel *from, struct fake_event_channel *to,
                      struct fake_id *id);
int fake_answer(struct fake_call *call);
void fake_lead_to_device(struct fake_id *id);
// Adds the event that tells what came of resolving an address or a route on a channel.
void fake_tell(struct fake_id *id, enum rdma_cm_event_type type, int status);

#endif // FAKE_CM_H
