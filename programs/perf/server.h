// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.h -- the state and the functions that the parts of the server share

#ifndef RPMA_PERF_SERVER_H
#define RPMA_PERF_SERVER_H 1

#include "result.h"
#include "session.h"

struct server {
    const struct options *options;
    struct session session;
    struct memory memory; // ptr NULL: DRAM, allocated for each plan
    struct side self;
    uint64_t session_number;
    uint64_t cpu_before;
    uint64_t heard; // when the client itself, not only its device, last sent or connected
    bool is_busy;   // from a plan to its result
};

// Carries out and answers the client's message. Returns false if the client is lost.
bool server_answer(struct server *server);
// Reports the failure to the client and to the operator.
bool server_refuse(struct server *server);
void server_drop_crew(struct server *server);

#endif
