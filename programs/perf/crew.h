// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// crew.h -- the resources of one load: memory, connections, and the threads that use them

#ifndef RPMA_PERF_CREW_H
#define RPMA_PERF_CREW_H 1

#include "histogram.h"
#include "link.h"
#include "memory.h"
#include "operations.h"
#include "plan.h"

#include <pthread.h>
#include <stdatomic.h>

struct crew;
struct recording;
struct worker;

// A connection of the load. The measurement continues the operation numbers of the warm-up.
struct lane {
    struct crew *crew;
    struct worker *worker;
    struct link link;
    uint64_t index;
    size_t base;         // where the lane's part of crew->memory begins
    size_t receive_base; // where the buffers of its receives begin
    // used by the client only:
    struct rpma_batch **batches;
    struct rpma_sge elements[ELEMENTS_MAX];
    uint64_t *started;     // when the operation of each place was posted
    uint64_t posted, done; // operations
    uint64_t limit;        // the greatest value of posted; 0: no limit
    bool is_over;          // nothing more is posted in this phase
    uint64_t allowed;      // messages for which the server has posted receives
    uint64_t unretired;    // sends that no completion has covered yet
    uint64_t replies;      // receives that completed at the client
    // for a ledger:
    _Atomic uint64_t completed; // done, for other threads
    _Atomic uint64_t recorded;  // of these, what the ledger says durably
    uint64_t added;             // of these, what the ledger may say; recording->lock
    // used by the server only:
    _Atomic uint64_t received; // messages
    uint64_t sent;
    uint64_t consumed; // receives posted again that the client does not know of yet
};

struct worker {
    struct crew *crew;
    pthread_t thread;
    struct rpma_cq *cq, *rcq; // rcq NULL: receives complete in cq
    uint64_t first;           // lanes first, first + plan.threads, …
    uint64_t under_way;       // outstanding operations of all its lanes
    _Atomic uint64_t progress;
    atomic_bool has_ended;
    bool has_thread;
    struct histogram histogram;
    bool is_done;                // the worker has done all its work
    uint64_t began_at, ended_at; // of the measurement
};

struct crew {
    struct plan plan;
    const struct operation *operation;
    struct rpma_peer *peer;
    struct memory memory;
    bool owns_memory;
    struct rpma_mr_local *mr;
    struct rpma_mr_remote *remote; // used by the client only
    size_t place_size, lane_size;
    struct lane *lanes;
    uint64_t connected; // number of established lanes, from the first
    struct worker *workers;
    atomic_bool stop;
    int wake_fd; // readable when a worker has ended or waits at the gate
    const struct limits *limits;
    struct recording *recording; // NULL: there is no ledger
    pthread_mutex_t lock;
    pthread_cond_t gate;
    bool is_open;
    bool has_begun;           // on the server: its threads, if it needs any, were started
    _Atomic uint64_t waiting; // workers at the gate
};

struct queues {
    uint64_t sends, receives; // per connection
};

// Takes ownership of the memory if owns_memory, even on failure. Returns NULL on failure.
struct crew *crew_new(const struct plan *plan, struct rpma_peer *peer, struct queues queues,
                      struct memory *memory, bool owns_memory, int usage);
void crew_delete(struct crew *crew);

// The configuration of the next connection, with the CQs of its worker.
struct rpma_conn_cfg *crew_next_cfg(const struct crew *crew, struct queues queues);

bool crew_start(struct crew *crew, void *(*run)(void *worker));
// Interrupts all waits and joins all threads.
void crew_stop(struct crew *crew);
bool crew_has_ended(const struct crew *crew);
void crew_wake_main(struct crew *crew);

// A worker waits here until crew_open_gate(). Returns false if the worker has to end.
bool crew_wait_at_gate(struct crew *crew);
void crew_open_gate(struct crew *crew);

static inline bool crew_is_stopped(const struct crew *crew) {
    return atomic_load_explicit(&crew->stop, memory_order_relaxed);
}

// Waits for completions unless the plan polls. Returns false on failure or after crew_stop().
bool worker_wait(struct worker *worker, struct rpma_cq *cq);
// Takes completions of both CQs and calls handle for each. Returns their number; -1: failure.
int worker_take(struct worker *worker,
                bool (*handle)(struct lane *lane, const struct ibv_wc *wc, uint64_t now));

#endif
