// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// worker.c -- the threads of a load: how they start, wait and stop

#include "crew.h"
#include "failure.h"
#include "waiting.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TAKEN_AT_ONCE 32

bool crew_start(struct crew *crew, void *(*run)(void *worker)) {
    for (uint64_t i = 0; i < crew->plan.threads; i++) {
        struct worker *worker = &crew->workers[i];
        int error = pthread_create(&worker->thread, NULL, run, worker);
        if (error)
            return fail("cannot start a thread: %s", strerror(error));
        worker->has_thread = true;
    }
    return true;
}

void crew_wake_main(struct crew *crew) {
    uint64_t one = 1;
    if (write(crew->wake_fd, &one, sizeof(one)) < 0)
        fail("eventfd does not take a number");
}

// A signal just before a wait does not interrupt it, so the signal is repeated.
static void interrupt(struct worker *worker) {
    const struct timespec pause = {.tv_nsec = 5000000};
    while (!atomic_load(&worker->has_ended)) {
        pthread_kill(worker->thread, WAKE_SIGNAL);
        nanosleep(&pause, NULL);
    }
}

void crew_stop(struct crew *crew) {
    atomic_store(&crew->stop, true);
    crew_open_gate(crew);
    for (uint64_t i = 0; crew->workers && i < crew->plan.threads; i++) {
        struct worker *worker = &crew->workers[i];
        if (!worker->has_thread)
            continue;
        interrupt(worker);
        pthread_join(worker->thread, NULL);
        worker->has_thread = false;
    }
}

bool crew_has_ended(const struct crew *crew) {
    for (uint64_t i = 0; i < crew->plan.threads; i++)
        if (!atomic_load(&crew->workers[i].has_ended))
            return false;
    return true;
}

bool crew_wait_at_gate(struct crew *crew) {
    pthread_mutex_lock(&crew->lock);
    atomic_fetch_add(&crew->waiting, 1);
    crew_wake_main(crew);
    while (!crew->is_open)
        pthread_cond_wait(&crew->gate, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
    return !crew_is_stopped(crew);
}

void crew_open_gate(struct crew *crew) {
    pthread_mutex_lock(&crew->lock);
    crew->is_open = true;
    pthread_cond_broadcast(&crew->gate);
    pthread_mutex_unlock(&crew->lock);
}

bool worker_wait(struct worker *worker, struct rpma_cq *cq) {
    if (crew_is_stopped(worker->crew))
        return false;
    if (worker->crew->plan.poll)
        return true;
    int ret = rpma_cq_wait(cq);
    // A signal interrupted the wait: the crew may be stopped.
    if (ret == RPMA_E_NO_COMPLETION)
        return !crew_is_stopped(worker->crew);
    return succeeds(ret, "cannot wait for completions");
}

static int take_from(struct rpma_cq *cq,
                     bool (*handle)(struct lane *lane, const struct ibv_wc *wc, uint64_t now)) {
    struct ibv_wc wc[TAKEN_AT_ONCE];
    int count;
    int ret = rpma_cq_get_wc(cq, TAKEN_AT_ONCE, wc, &count);
    if (ret == RPMA_E_NO_COMPLETION)
        return 0;
    if (!succeeds(ret, "cannot take completions"))
        return -1;
    uint64_t now = now_ns();
    for (int i = 0; i < count; i++) {
        struct lane *lane = (struct lane *)(uintptr_t)wc[i].wr_id;
        if (wc[i].status != IBV_WC_SUCCESS) {
            fail("an operation failed: %s", ibv_wc_status_str(wc[i].status));
            return -1;
        }
        if (!handle(lane, &wc[i], now))
            return -1;
    }
    return count;
}

int worker_take(struct worker *worker,
                bool (*handle)(struct lane *lane, const struct ibv_wc *wc, uint64_t now)) {
    int of_receives = worker->rcq ? take_from(worker->rcq, handle) : 0;
    int of_all = of_receives < 0 ? -1 : take_from(worker->cq, handle);
    return of_all < 0 ? -1 : of_receives + of_all;
}
