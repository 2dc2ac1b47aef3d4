// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// session.h -- a client and its server: the wait for messages, events and workers

#ifndef RPMA_PERF_SESSION_H
#define RPMA_PERF_SESSION_H 1

#include "control.h"
#include "crew.h"

struct session {
    struct rpma_peer *peer;
    const char *device;
    struct rpma_ep *ep; // on the server only
    int ep_fd;
    struct control control;
    struct crew *crew;  // of the load in preparation or in progress
    bool watches_lanes; // the end of a connection of the load ends the session
};

enum news { NEWS_NONE, NEWS_MESSAGE, NEWS_REQUEST, NEWS_WORKER, NEWS_LOST, NEWS_STOP };

// Waits for the first news, or until the time is over.
enum news session_wait(struct session *session, int milliseconds);

// Opens the device of an address of this machine, or the device that leads to a remote address.
bool session_open_peer(struct session *session, const char *address,
                       enum rpma_util_ibv_context_type type);

#endif
