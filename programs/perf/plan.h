// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// plan.h -- the settings of one load, which the client chooses and sends to the server

#ifndef RPMA_PERF_PLAN_H
#define RPMA_PERF_PLAN_H 1

#include "message.h"

#define CONNECTIONS_MAX 512
#define RING_MAX (UINT64_C(1) << 24)
#define ELEMENTS_MAX 32
#define SIZE_MAX_OF_OPERATION (UINT64_C(1) << 30)
#define ATOMIC_SIZE 8
// Where transfers begin: rdma_rxe misplaces others in memory with on-demand paging.
#define SLOT_ALIGNMENT 4096

struct plan {
    uint64_t operation; // index into operations[]
    uint64_t size;
    uint64_t depth; // the greatest number of outstanding operations of a connection
    uint64_t batch; // operations posted at once
    uint64_t prepared;
    uint64_t elements;
    uint64_t inline_size;
    uint64_t connections;
    uint64_t threads;
    uint64_t poll;
    uint64_t verify;
    uint64_t ring; // with a ledger: places of a connection in the server's memory; otherwise 0
};

// A setting of the plan: its name in messages, in JSON and as an option, and its range.
struct setting {
    const char *name;
    size_t offset;
    uint64_t min, max, start;
};

extern const struct setting settings[];
extern const size_t setting_count;

uint64_t *plan_field(struct plan *plan, const struct setting *setting);
uint64_t plan_value(const struct plan *plan, const struct setting *setting);

void plan_add_to(const struct plan *plan, struct message *message);
// Returns false and records why if a setting is missing or out of range, or settings conflict.
bool plan_get_from(struct plan *plan, const struct message *message);

// Describes the conflict between settings of a plan, or NULL.
const char *plan_conflict(const struct plan *plan);

// Both sides derive these values from the plan.
uint64_t plan_stride(const struct plan *plan);        // bytes from one place to the next
uint64_t plan_receives(const struct plan *plan);      // per connection, on the server
uint64_t plan_target_places(const struct plan *plan); // per connection, in the server's memory
uint64_t plan_target_size(const struct plan *plan);   // bytes for all connections
uint64_t plan_signal_every(const struct plan *plan);  // one of this many sends is signaled
uint64_t plan_sends(const struct plan *plan);         // the most outstanding sends

#endif
