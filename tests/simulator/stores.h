// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// stores.h -- the stores that are not persistent, and the values that a power failure can
// leave, for the simulator and for the fakes of the unit tests

#ifndef SIMULATOR_STORES_H
#define SIMULATOR_STORES_H 1

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sim_store {
    uint32_t word, writer;
    uint64_t value;
};

struct sim_stores {
    uint64_t *persistent; // the persistent values of all words
    uint32_t *settled;    // for each word, the last flush that made a store persistent
    uint32_t flushes;
    struct sim_store *all; // the stores in the order of execution
    size_t count, room;
};

void sim_add_store(struct sim_stores *stores, struct sim_store store);
// Executes a persistent flush of the writer for the words from `first` to before `end`: its
// newest store in each of them becomes persistent. Older stores of the word are removed; newer
// stores of other writers can still be lost.
void sim_flush_stores(struct sim_stores *stores, uint32_t writer, size_t first, size_t end);

#ifdef __cplusplus
}
#endif

#endif // SIMULATOR_STORES_H
