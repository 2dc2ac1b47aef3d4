// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// recording.c -- how a load keeps its ledger

#include "recording.h"

#include "failure.h"

#include <stdlib.h>
#include <sys/random.h>

bool recording_begin(struct crew *crew, const char *path) {
    struct recording *recording = calloc(1, sizeof(*recording));
    if (!recording)
        return fail("out of memory");
    recording->head.plan = crew->plan;
    if (getrandom(&recording->head.run, sizeof(recording->head.run), 0) !=
        sizeof(recording->head.run))
        fail("no random number");
    else if ((recording->ledger = ledger_create(path, &recording->head))) {
        pthread_mutex_init(&recording->lock, NULL);
        crew->recording = recording;
        return true;
    }
    free(recording);
    return false;
}

// The most that a lane posts beyond what is recorded of it.
static uint64_t allowance_of(const struct crew *crew) {
    return crew->plan.ring / 2;
}

bool recording_write(struct crew *crew) {
    struct recording *recording = crew->recording;
    if (!recording)
        return true;
    pthread_mutex_lock(&recording->lock);
    for (uint64_t i = 0; i < crew->plan.connections; i++) {
        struct lane *lane = &crew->lanes[i];
        uint64_t done = atomic_load_explicit(&lane->completed, memory_order_acquire);
        if (done != lane->added)
            ledger_add(recording->ledger,
                       (struct ledger_line){i, done, done + allowance_of(crew)});
        lane->added = done;
    }
    bool is_durable = ledger_sync(recording->ledger);
    for (uint64_t i = 0; is_durable && i < crew->plan.connections; i++)
        atomic_store_explicit(&crew->lanes[i].recorded, crew->lanes[i].added,
                              memory_order_release);
    recording->has_failed |= !is_durable;
    pthread_mutex_unlock(&recording->lock);
    return is_durable;
}

bool recording_permits(struct lane *lane) {
    const struct crew *crew = lane->crew;
    if (!crew->recording ||
        lane->posted + crew->plan.batch <=
            atomic_load_explicit(&lane->recorded, memory_order_acquire) + allowance_of(crew))
        return true;
    return recording_write(lane->crew);
}

bool recording_end(struct crew *crew, uint64_t *records) {
    struct recording *recording = crew->recording;
    *records = 0;
    for (uint64_t i = 0; i < crew->plan.connections; i++) {
        const struct lane *lane = &crew->lanes[i];
        // A call that failed may have posted its batch all the same.
        ledger_add(recording->ledger,
                   (struct ledger_line){i, lane->completed, lane->posted + crew->plan.batch});
        *records += lane->completed;
    }
    bool is_durable = ledger_sync(recording->ledger);
    ledger_close(recording->ledger);
    pthread_mutex_destroy(&recording->lock);
    free(recording);
    crew->recording = NULL;
    return is_durable;
}
