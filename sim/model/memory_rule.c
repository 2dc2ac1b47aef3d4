// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// memory_rule.c -- the effects of operations on earlier writes, and the stores that are not
// persistent

#include "memory_rule.h"
#include "../device/rules.h"

#include <stdlib.h>
#include <string.h>

const char *const sim_platform_names[SIM_PLATFORMS] = {
    [SIM_DIRECT_WRITE] = "direct-write",
    [SIM_CPU_FLUSH] = "cpu-flush",
    [SIM_FLUSH_ONLY] = "flush-only",
};

// InfiniBand Architecture Specification, volume 1: a read or an atomic operation returns the
// data of earlier writes, and the completion of a receive follows them (9.5); a flush has a
// range (annex A19); an operation with 0 bytes need not access the memory (C9-88).
enum sim_reach sim_made_visible(uint32_t opcode, uint64_t length) {
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
        return SIM_NO_WRITES;
    case SIM_WR_FLUSH:
        return length > 0 ? SIM_WRITES_IN_RANGE : SIM_NO_WRITES;
    case IBV_WR_RDMA_READ:
        return length > 0 ? SIM_ALL_WRITES : SIM_NO_WRITES;
    default:
        return SIM_ALL_WRITES;
    }
}

// A read of the device does not pass its earlier writes (PCI Express Base
// Specification, 2.4.1), so they have reached the memory controller when its data arrives.
// Fetch-and-add and compare-and-swap read as well; an atomic write does not.
enum sim_reach sim_made_persistent(enum sim_platform platform, uint32_t opcode,
                                   unsigned flush_type, uint64_t length) {
    const bool is_read = opcode == IBV_WR_RDMA_READ;
    if (length == 0)
        return SIM_NO_WRITES;
    if (opcode == SIM_WR_FLUSH)
        return flush_type & SIM_FLUSH_PERSISTENT ? SIM_WRITES_IN_RANGE : SIM_NO_WRITES;
    if (platform == SIM_CPU_FLUSH)
        return SIM_NO_WRITES;
    if (platform == SIM_FLUSH_ONLY)
        return is_read && length <= sizeof(uint64_t) ? SIM_WRITES_IN_REST : SIM_NO_WRITES;
    return is_read || sim_is_atomic(opcode) ? SIM_ALL_WRITES : SIM_NO_WRITES;
}

// ---- stores --------------------------------------------------------------------------------

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

void sim_remove_stores(struct sim_stores *stores, size_t first, size_t end) {
    size_t left = 0;
    for (size_t i = 0; i < stores->count; i++)
        if (stores->all[i].word < first || stores->all[i].word >= end)
            stores->all[left++] = stores->all[i];
    stores->count = left;
}

void sim_lose_power(const struct sim_stores *stores, uint64_t *image,
                    uint64_t (*survive)(void *), void *argument) {
    for (size_t i = 0; i < stores->count; i++) {
        const uint64_t mask = survive(argument);
        uint64_t *const word = &image[stores->all[i].word];
        *word = (*word & ~mask) | (stores->all[i].value & mask);
    }
}
