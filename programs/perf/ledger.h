// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// ledger.h -- the records that a client writes, and the file that says which of them are
// flushed

#ifndef RPMA_PERF_LEDGER_H
#define RPMA_PERF_LEDGER_H 1

#include "memory.h"
#include "plan.h"

#define RECORD_SIZE_MIN 128 // more than a cache line, so that a record can be torn

// The first line of a ledger. It fixes where each record is and each byte of it.
struct ledger_head {
    uint64_t run; // random, so that nothing of an earlier run passes for a record
    struct plan plan;
};

// A later line: the records 0 to done - 1 of the connection were flushed, and before the next
// line of this connection is durable, no record from bound on was posted.
struct ledger_line {
    uint64_t connection, done, bound;
};

uint64_t record_place(const struct ledger_head *head, uint64_t connection, uint64_t number);
void record_fill(void *record, const struct ledger_head *head, uint64_t connection,
                 uint64_t number);

struct ledger;

// Makes the file, which must not exist, with its first line. Returns NULL on failure.
struct ledger *ledger_create(const char *path, const struct ledger_head *head);
void ledger_add(struct ledger *ledger, struct ledger_line line);
// Returns true once all added lines are durable.
bool ledger_sync(struct ledger *ledger);
void ledger_close(struct ledger *ledger);

// Reads a ledger; lines has the last line of each of the CONNECTIONS_MAX connections. *is_torn:
// a part of a line at the end, which a client that died had not completed, was left out.
bool ledger_read(const char *path, struct ledger_head *head, struct ledger_line *lines,
                 bool *is_torn);

#endif
