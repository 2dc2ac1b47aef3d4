// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// client.h -- the state and the functions that the parts of the client share

#ifndef RPMA_PERF_CLIENT_H
#define RPMA_PERF_CLIENT_H 1

#include "result.h"
#include "session.h"

#define TICK_MS 500

struct client {
    struct options *options;
    struct session session;
    uint64_t session_number; // chosen by the server for this load
    struct side self, server;
    struct json_report *json;
};

// Waits for an answer that begins with the word; a refusal of the server becomes the failure.
bool client_await(struct client *client, const char *word);
bool client_ask(struct client *client, const char *word, const char *answer);

// Makes the crew of the plan, waits until the server is ready, and connects the crew.
bool client_prepare(struct client *client);

#endif
