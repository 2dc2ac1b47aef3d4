// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// session.h -- a client and its server: what either of them has to look at while it waits

#ifndef RPMA_PERF_SESSION_H
#define RPMA_PERF_SESSION_H 1

#include "control.h"
#include "crew.h"

struct session {
    struct rpma_peer *peer;
    const char *device;
    struct rpma_ep *ep; // the server's
    int ep_fd;
    struct control control;
    struct crew *crew;  // of the load that is prepared or runs
    bool watches_lanes; // the end of a connection of the load is the end of it all
};

enum news { NEWS_NONE, NEWS_MESSAGE, NEWS_REQUEST, NEWS_WORKER, NEWS_LOST, NEWS_STOP };

// Waits for the first of them, or until the time is over.
enum news session_wait(struct session *session, int milliseconds);

// The device behind an address of this machine, or on the way to one of another.
bool session_open_peer(struct session *session, const char *address,
                       enum rpma_util_ibv_context_type type);

#endif
