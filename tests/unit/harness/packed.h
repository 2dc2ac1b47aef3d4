// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// packed.h -- packed private data: the bytes, written by hand

#ifndef PACKED_H
#define PACKED_H 1

#include "fixture.h"

enum {
    PACKED_HEADER = 6,
    PACKED_REGION = 22,
    PACKED_CAPABILITIES = 2,
    PACKED_MOST = 255, // bytes that private data can have
    PACKED_MOST_REGIONS = 11,
    PACKED_NO_CAPABILITIES = -1,
    PACKED_ATOMICS = 1, // with RPMA_MR_USAGE_FLUSH_TYPE_*, after the descriptor of a region
};

struct packed_region {
    uint64_t addr, size;
    uint32_t rkey;
    uint8_t usage, natively;
};

// The content of packed private data; more: bytes that a later release adds to each part.
struct packed {
    unsigned regions;
    struct packed_region region[PACKED_MOST_REGIONS];
    int direct_write; // or PACKED_NO_CAPABILITIES
    unsigned served;  // 0: not stated
    unsigned len;     // of the program's bytes, which count from 1
    unsigned more;
};

// Writes the form of the content, which may be longer than PACKED_MOST. Returns its size.
size_t packed_form(const struct packed *c, unsigned char *out);
// Content with regions, and addresses, sizes, keys and usages that all differ.
struct packed packed_arbitrary(unsigned regions, int direct_write, unsigned served,
                               unsigned len, unsigned more);
// Copies the bytes to a block of exactly their size, so that sanitizers detect an access beyond
// it; test_free() frees it.
struct rpma_conn_private_data packed_exactly(const unsigned char *bytes, size_t size);

// A remote region of packed private data; natively: the byte after its descriptor.
struct rpma_mr_remote *packed_remote(uint64_t addr, uint64_t size, uint32_t rkey, uint8_t usage,
                                     uint8_t natively);

#endif // PACKED_H
