// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// target.h -- a target whose power may fail, and two connections to it
//
// The tests state which bytes it still has then: those that were flushed, in the range, in the
// order and on the connection of the flush.

#ifndef TARGET_H
#define TARGET_H 1

#include "operation.h"
#include "packed.h"

enum { WORD = 8, TARGET_SIZE = 4096 + 65, TARGET_REGIONS = 2 };

// The first region ends with the first byte of a word, the second begins within one.
struct target_region {
    uint64_t addr;
    uint32_t rkey;
};
extern const struct target_region target_regions[TARGET_REGIONS];

extern struct world target_worlds[2]; // with batches; no byte of their memory is 0
extern struct rpma_mr_remote *target_remotes[TARGET_REGIONS];
extern const unsigned char *target_found[TARGET_REGIONS]; // after fake_power_failure()
extern unsigned char target_expected[TARGET_REGIONS][TARGET_SIZE];

void target_begin(bool native);
void target_end(void);
// Clears the memory and the expected bytes.
void target_erase(void);
struct rpma_mr_remote *target_remote(uint64_t addr, uint32_t rkey);

struct step {
    struct rpma_work o;
    unsigned conn;
};
enum { TARGET_MOST_STEPS = 8 };
enum target_way { TARGET_ONE_BY_ONE, TARGET_IN_AN_ARRAY, TARGET_BATCHED, TARGET_WAYS };
// Posts each step by itself, or successive ones on one connection as an array or a batch.
void target_run(const struct step *steps, size_t count, enum target_way way);

struct rpma_work target_write(unsigned conn, int region, size_t offset, size_t len);
struct rpma_work target_flush(int region, size_t from, size_t to); // persistent
enum { TARGET_SOURCE = 16 }; // where target_write() takes its bytes from

#endif // TARGET_H
