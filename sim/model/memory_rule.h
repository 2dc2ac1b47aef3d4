// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// memory_rule.h -- which earlier writes of its connection an operation makes visible and
// persistent, and the values that a power failure can leave.
//
// The only such rule.

#ifndef SIM_MEMORY_RULE_H
#define SIM_MEMORY_RULE_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A word is 8 aligned bytes, which a platform writes at once. A write is executed when the
// device of the target has accepted it, visible when the processor reads its value, and
// persistent when it survives a power failure.

// What makes writes persistent. With direct write, the memory controller or the cache to which
// the device writes belongs to the persistence domain, so that a read makes them persistent as
// a flush does; with CPU flush, it is a cache that a power failure clears. Flush only is what a
// program may rely on: only a flush, which on devices without native flush is a read of up to 8
// bytes. Such a read does not contain the length of the flush.
enum sim_platform { SIM_DIRECT_WRITE, SIM_CPU_FLUSH, SIM_FLUSH_ONLY, SIM_PLATFORMS };
extern const char *const sim_platform_names[SIM_PLATFORMS];

// The earlier writes of the connection that an operation affects.
enum sim_reach {
    SIM_NO_WRITES,
    SIM_WRITES_IN_RANGE, // words with a byte in the range of the operation
    SIM_WRITES_IN_REST,  // words from the begin of the range to the end of the region
    SIM_ALL_WRITES,
};

// `length`: the bytes that the operation transfers, or those of the range of a flush.
enum sim_reach sim_made_visible(uint32_t opcode, uint64_t length);

// `flush_type`: of a flush.
enum sim_reach sim_made_persistent(enum sim_platform platform, uint32_t opcode,
                                   unsigned flush_type, uint64_t length);

// ---- stores --------------------------------------------------------------------------------

struct sim_store {
    uint32_t word, writer;
    uint64_t value;
};

// The stores that are not persistent.
struct sim_stores {
    uint64_t *persistent; // the persistent values of all words
    uint32_t *settled;    // for each word, the last flush that made a store persistent
    uint32_t flushes;
    struct sim_store *all; // the stores in the order in which they became visible
    size_t count, room;
};

void sim_add_store(struct sim_stores *stores, struct sim_store store);
// Executes a persistent flush of the writer for the words from `first` to before `end`: its
// newest store in each of them becomes persistent. Older stores of the word are removed; newer
// stores of other writers can still be lost.
void sim_flush_stores(struct sim_stores *stores, uint32_t writer, size_t first, size_t end);
// Removes all stores of these words. The caller has made their present values persistent.
void sim_remove_stores(struct sim_stores *stores, size_t first, size_t end);
// Changes `image`, the persistent values, to one that a power failure can leave: each store
// survives by itself. `survive` returns the mask of the bits of a store that survive.
void sim_lose_power(const struct sim_stores *stores, uint64_t *image,
                    uint64_t (*survive)(void *), void *argument);

#ifdef __cplusplus
}
#endif

#endif // SIM_MEMORY_RULE_H
