// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// target.h -- the simulated fabric in the process of a test: on host 2, memory and connections
// that end there, without librpma. The program under test is on host 1.

#ifndef TARGET_H
#define TARGET_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The first region ends with the first byte of a word, the second begins within a word.
enum { TARGET_SIZE = 4096 + 65, TARGET_REGIONS = 2 };
#define TARGET_ADDRESS "10.77.0.2"
#define TARGET_PORT "7204"

struct target_region {
    uint64_t addr;
    uint32_t rkey;
};

// Starts a fabric whose devices have these operations. Host 2 listens.
void target_start(bool has_native_flush, bool has_native_atomic_write);
void target_end(void);
// Accepts the connection request of host 1, and returns the regions of all connections.
const struct target_region *target_accept(void);
// From now on, no request arrives.
void target_stop(void);
// Clears the memory, as if all zeros were persistent.
void target_clear(void);
// Computes the memory after a power failure at this moment; the target itself continues. Each
// word that is not persistent survives or is lost independently: the nth such word, in the
// order of execution, survives if bit n % 64 of survivors is set. Returns the number of these
// words.
size_t target_lose_power(uint64_t survivors);
// The bytes of a region after the power failure.
const unsigned char *target_found(int region);

#ifdef __cplusplus
}
#endif

#endif // TARGET_H
