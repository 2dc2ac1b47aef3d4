// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// packed.h -- packed private data: its bytes, written without the library

#ifndef PACKED_H
#define PACKED_H 1

#include "fixture.h"

enum {
    PACKED_HEADER = 6,
    PACKED_REGION = 22,
    PACKED_CAPABILITIES = 2,
    PACKED_MAX = 255, // bytes that private data can have
    PACKED_MAX_REGIONS = 11,
    PACKED_NO_CAPABILITIES = -1,
    // In the byte after the descriptor of a region, with RPMA_MR_USAGE_FLUSH_TYPE_*.
    PACKED_ATOMICS = 1,
};

struct packed_region {
    uint64_t addr, size;
    uint32_t rkey;
    uint8_t usage, native_usage;
};

// The content of packed private data.
struct packed {
    unsigned regions;
    struct packed_region region[PACKED_MAX_REGIONS];
    int direct_write; // or PACKED_NO_CAPABILITIES
    unsigned served;  // 0: not advertised
    unsigned len;     // number of bytes of the program: 1, 2, 3 …
    unsigned more;    // bytes that a later release adds to each part
};

// Writes the bytes of the content, possibly more than PACKED_MAX. Returns their number.
size_t packed_form(const struct packed *c, unsigned char *out);
// Content whose addresses, sizes, keys and usages all differ.
struct packed packed_arbitrary(unsigned regions, int direct_write, unsigned served,
                               unsigned len, unsigned more);
// Copies the bytes to a block of exactly their size, so that sanitizers detect an access
// beyond them; test_free() frees the block.
struct rpma_conn_private_data packed_exactly(const unsigned char *bytes, size_t size);

// A remote region from packed private data; native_usage is the byte after its descriptor.
struct rpma_mr_remote *packed_remote(uint64_t addr, uint64_t size, uint32_t rkey, uint8_t usage,
                                     uint8_t native_usage);

#endif // PACKED_H
