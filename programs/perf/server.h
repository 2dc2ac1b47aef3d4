// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.h -- the server: its parts, and what they share

#ifndef RPMA_PERF_SERVER_H
#define RPMA_PERF_SERVER_H 1

#include "result.h"
#include "session.h"

struct server {
    const struct options *options;
    struct session session;
    struct memory memory; // ptr NULL: DRAM, made for each plan
    struct side self;
    uint64_t session_number;
    uint64_t cpu_before;
    uint64_t heard; // when the client, not only its device, said something or connected
    bool is_busy;   // from a plan to its result
};

// Performs what the client's message asks for, and answers it. False: the client is lost.
bool server_answer(struct server *server);
// Tells the client, and the operator, what failed.
bool server_refuse(struct server *server);
void server_drop_crew(struct server *server);

#endif
