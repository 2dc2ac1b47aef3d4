// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

#include "stores.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void sim_add_store(struct sim_stores *stores, struct sim_store store) {
    if (stores->count == stores->room) {
        stores->room = 2 * stores->room + 64;
        stores->all = realloc(stores->all, stores->room * sizeof(*stores->all));
        if (!stores->all)
            abort();
    }
    stores->all[stores->count++] = store;
}

void sim_flush_stores(struct sim_stores *stores, uint32_t writer, size_t first, size_t end) {
    size_t left = stores->count; // the index of the first store that is not persistent
    stores->flushes++;
    for (size_t i = stores->count; i-- > 0;) {
        const struct sim_store store = stores->all[i];
        const bool is_covered = store.word >= first && store.word < end;
        if (is_covered && stores->settled[store.word] == stores->flushes)
            continue;
        if (is_covered && store.writer == writer) {
            stores->persistent[store.word] = store.value;
            stores->settled[store.word] = stores->flushes;
            continue;
        }
        stores->all[--left] = store;
    }
    stores->count -= left;
    memmove(stores->all, stores->all + left, stores->count * sizeof(*stores->all));
}
