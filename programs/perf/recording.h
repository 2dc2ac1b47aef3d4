// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// recording.h -- how a load keeps its ledger

#ifndef RPMA_PERF_RECORDING_H
#define RPMA_PERF_RECORDING_H 1

#include "crew.h"
#include "ledger.h"

struct recording {
    struct ledger_head head;
    struct ledger *ledger;
    pthread_mutex_t lock;
    atomic_bool has_failed; // the ledger is not complete, and failure() says why
};

// Gives the crew a ledger in a new file. Returns false on failure.
bool recording_begin(struct crew *crew, const char *path);

// Makes what has completed so far durable in the ledger. Any thread may call it.
bool recording_write(struct crew *crew);

// Before a worker posts: a record that the ledger names is overwritten only when the ledger
// says so, because the client may die, too.
bool recording_permits(struct lane *lane);

// After the workers have ended: writes the last lines. Sets *records to what the ledger counts.
bool recording_end(struct crew *crew, uint64_t *records);

#endif
