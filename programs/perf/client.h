// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.h -- the client: its parts, and what they share

#ifndef RPMA_PERF_CLIENT_H
#define RPMA_PERF_CLIENT_H 1

#include "result.h"
#include "session.h"

#define TICK_MS 500

struct client {
    struct options *options;
    struct session session;
    uint64_t session_number; // which the server gave to this load
    struct side self, server;
    struct json_report *json;
};

// Waits for an answer that begins with the word; what the server refuses is the failure.
bool client_await(struct client *client, const char *word);
bool client_ask(struct client *client, const char *word, const char *answer);

// Makes the crew of the plan, connected to a server that is ready.
bool client_prepare(struct client *client);

#endif
