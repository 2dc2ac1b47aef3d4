// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// crew.c -- the resources of one load: memory, connections, and the threads that use them

#include "crew.h"

#include "failure.h"
#include "waiting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static bool make_queue(const struct crew *crew, uint64_t size, struct rpma_cq **cq) {
    struct rpma_cq_cfg *cfg = NULL;
    bool is_made =
        succeeds(rpma_cq_cfg_new(&cfg), "no configuration of a completion queue") &&
        succeeds(rpma_cq_cfg_set_size(cfg, (uint32_t)size), "no size") &&
        succeeds(rpma_cq_new(crew->peer, cfg, cq),
                 "cannot make a completion queue of %lu entries", (unsigned long)size);
    (void)rpma_cq_cfg_delete(&cfg);
    return is_made;
}

static bool make_workers(struct crew *crew, struct queues queues) {
    crew->workers = calloc(crew->plan.threads, sizeof(*crew->workers));
    if (!crew->workers)
        return fail("out of memory");
    uint64_t lanes = (crew->plan.connections + crew->plan.threads - 1) / crew->plan.threads;
    bool is_split = crew->operation->has_receive_cq;
    for (uint64_t i = 0; i < crew->plan.threads; i++) {
        struct worker *worker = &crew->workers[i];
        worker->crew = crew;
        worker->first = i;
        histogram_reset(&worker->histogram);
        if (!make_queue(crew, lanes * (queues.sends + (is_split ? 0 : queues.receives)),
                        &worker->cq) ||
            (is_split && !make_queue(crew, lanes * queues.receives, &worker->rcq)))
            return false;
    }
    return true;
}

static bool make_lanes(struct crew *crew) {
    crew->lanes = calloc(crew->plan.connections, sizeof(*crew->lanes));
    if (!crew->lanes)
        return fail("out of memory");
    for (uint64_t i = 0; i < crew->plan.connections; i++)
        crew->lanes[i] = (struct lane){
            .crew = crew, .worker = &crew->workers[i % crew->plan.threads], .index = i};
    return true;
}

struct crew *crew_new(const struct plan *plan, struct rpma_peer *peer, struct queues queues,
                      struct memory *memory, bool owns_memory, int usage) {
    struct crew *crew = calloc(1, sizeof(*crew));
    if (!crew) {
        fail("out of memory");
        if (owns_memory)
            memory_free(memory);
        return NULL;
    }
    crew->plan = *plan;
    crew->operation = &operations[plan->operation];
    crew->peer = peer;
    crew->memory = *memory;
    crew->owns_memory = owns_memory;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->gate, NULL);
    crew->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (crew->wake_fd < 0)
        fail("eventfd: %s", strerror(errno));
    else if (succeeds(rpma_mr_reg(peer, memory->ptr, memory->size, usage, &crew->mr),
                      "cannot register %zu bytes of memory", memory->size) &&
             make_workers(crew, queues) && make_lanes(crew))
        return crew;
    crew_delete(crew);
    return NULL;
}

static void close_lane(struct lane *lane) {
    const struct plan *plan = &lane->crew->plan;
    for (uint64_t i = 0; lane->batches && i < plan->depth / plan->batch; i++)
        if (lane->batches[i])
            (void)rpma_batch_delete(&lane->batches[i]);
    free(lane->batches);
    free(lane->started);
    link_close(&lane->link);
}

static void delete_queues(struct crew *crew) {
    for (uint64_t i = 0; crew->workers && i < crew->plan.threads; i++) {
        if (crew->workers[i].cq)
            (void)rpma_cq_delete(&crew->workers[i].cq);
        if (crew->workers[i].rcq)
            (void)rpma_cq_delete(&crew->workers[i].rcq);
    }
    free(crew->workers);
}

void crew_delete(struct crew *crew) {
    if (!crew)
        return;
    crew_stop(crew);
    for (uint64_t i = 0; crew->lanes && i < crew->plan.connections; i++)
        close_lane(&crew->lanes[i]);
    free(crew->lanes);
    delete_queues(crew);
    if (crew->remote)
        (void)rpma_mr_remote_delete(&crew->remote);
    if (crew->mr)
        (void)rpma_mr_dereg(&crew->mr);
    if (crew->owns_memory)
        memory_free(&crew->memory);
    if (crew->wake_fd >= 0)
        close(crew->wake_fd);
    pthread_cond_destroy(&crew->gate);
    pthread_mutex_destroy(&crew->lock);
    free(crew);
}

struct rpma_conn_cfg *crew_next_cfg(const struct crew *crew, struct queues queues) {
    struct rpma_conn_cfg *cfg = link_cfg();
    if (!cfg)
        return NULL;
    const struct worker *worker = &crew->workers[crew->connected % crew->plan.threads];
    (void)rpma_conn_cfg_set_sq_size(cfg, (uint32_t)queues.sends);
    (void)rpma_conn_cfg_set_rq_size(cfg, (uint32_t)queues.receives);
    (void)rpma_conn_cfg_set_cq(cfg, worker->cq);
    if (worker->rcq)
        (void)rpma_conn_cfg_set_rcq(cfg, worker->rcq);
    return cfg;
}
