// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// crew.h -- what one load works with: memory, connections, and threads that use them

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
struct worker;

// A connection of the load. Numbers of operations go on from the warm-up to the measurement.
struct lane {
    struct crew *crew;
    struct worker *worker;
    struct link link;
    uint64_t index;
    size_t base;         // where its part of crew->memory begins
    size_t receive_base; // and that of its receives
    // the client's:
    struct rpma_batch **batches;
    struct rpma_sge elements[ELEMENTS_MAX];
    uint64_t *started;     // when each operation under way was posted, by its place
    uint64_t posted, done; // operations
    uint64_t limit;        // posted is not to exceed this; 0: no limit
    bool is_over;          // nothing is posted any more in this phase
    uint64_t allowed;      // messages that the server has receives for
    uint64_t unretired;    // messages whose completion did not come yet
    uint64_t replies;      // receives that completed at the client
    // the server's:
    _Atomic uint64_t received; // messages
    uint64_t sent;
    uint64_t consumed; // receives that the client was not told about yet
};

struct worker {
    struct crew *crew;
    pthread_t thread;
    struct rpma_cq *cq, *rcq; // rcq NULL: receives complete in cq
    uint64_t first;           // lanes first, first + plan.threads, …
    uint64_t under_way;       // operations of all its lanes
    _Atomic uint64_t progress;
    atomic_bool has_ended;
    bool has_thread;
    struct histogram histogram;
    bool is_done;                // all that it had to do
    uint64_t began_at, ended_at; // of the measurement
};

struct crew {
    struct plan plan;
    const struct operation *operation;
    struct rpma_peer *peer;
    struct memory memory;
    bool owns_memory;
    struct rpma_mr_local *mr;
    struct rpma_mr_remote *remote; // the client's
    size_t place_size, lane_size;
    struct lane *lanes;
    uint64_t connected; // lanes that are up: the first ones
    struct worker *workers;
    atomic_bool stop;
    int wake_fd; // readable when a worker ended or waits at the gate
    const struct limits *limits;
    pthread_mutex_t lock;
    pthread_cond_t gate;
    bool is_open;
    bool has_begun;           // the server's: its threads, if it needs any, were started
    _Atomic uint64_t waiting; // workers at the gate
};

struct queues {
    uint64_t sends, receives; // of a connection
};

// Takes the memory over if owns_memory, also when it fails. NULL: it failed.
struct crew *crew_new(const struct plan *plan, struct rpma_peer *peer, struct queues queues,
                      struct memory *memory, bool owns_memory, int usage);
void crew_delete(struct crew *crew);

// The configuration of the next connection, with the CQs of its worker.
struct rpma_conn_cfg *crew_next_cfg(const struct crew *crew, struct queues queues);

bool crew_start(struct crew *crew, void *(*run)(void *worker));
// Ends all waits, and returns when all threads are gone.
void crew_stop(struct crew *crew);
bool crew_has_ended(const struct crew *crew);
void crew_wake_main(struct crew *crew);

// A worker waits here until crew_open_gate(); false: it has to end.
bool crew_wait_at_gate(struct crew *crew);
void crew_open_gate(struct crew *crew);

static inline bool crew_is_stopped(const struct crew *crew) {
    return atomic_load_explicit(&crew->stop, memory_order_relaxed);
}

// Waits for completions as the plan says. False: it failed, or the crew is stopped.
bool worker_wait(struct worker *worker, struct rpma_cq *cq);
// Takes completions of both CQs and hands them on. Number of them, -1: it failed.
int worker_take(struct worker *worker,
                bool (*handle)(struct lane *lane, const struct ibv_wc *wc, uint64_t now));

#endif
