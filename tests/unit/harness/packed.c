// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// packed.c -- see packed.h

#include "packed.h"

void fixture_descriptor(unsigned char desc[21], uint64_t addr, uint64_t size, uint32_t rkey,
                        uint8_t usage) {
    for (int i = 0; i < 8; i++) {
        desc[i] = (unsigned char)(addr >> 8 * i);
        desc[8 + i] = (unsigned char)(size >> 8 * i);
    }
    for (int i = 0; i < 4; i++)
        desc[16 + i] = (unsigned char)(rkey >> 8 * i);
    desc[20] = usage;
}

size_t packed_form(const struct packed *c, unsigned char *out) {
    unsigned char *const start = out;
    const bool advertises = c->direct_write != PACKED_NO_CAPABILITIES;
    *out++ = 0xf5;
    *out++ = 1;
    *out++ = (unsigned char)c->regions;
    *out++ = (unsigned char)(PACKED_REGION + c->more);
    *out++ = (unsigned char)(advertises ? PACKED_CAPABILITIES + c->more : 0);
    *out++ = (unsigned char)c->len;
    for (const struct packed_region *r = c->region; r < c->region + c->regions; r++) {
        fixture_descriptor(out, r->addr, r->size, r->rkey, r->usage);
        out[21] = r->native_usage;
        memset(out + PACKED_REGION, 0x99, c->more);
        out += PACKED_REGION + c->more;
    }
    if (advertises) {
        *out++ = (unsigned char)(c->direct_write ? 1 | c->served : 0);
        *out++ = (unsigned char)c->served;
        memset(out, 0x99, c->more);
        out += c->more;
    }
    for (unsigned i = 0; i < c->len; i++)
        *out++ = (unsigned char)(1 + i);
    return (size_t)(out - start);
}

struct packed packed_arbitrary(unsigned regions, int direct_write, unsigned served,
                               unsigned len, unsigned more) {
    struct packed c = {.regions = regions,
                       .direct_write = direct_write,
                       .served = served,
                       .len = len,
                       .more = more};
    for (unsigned i = 0; i < regions; i++)
        c.region[i] = (struct packed_region){0xfedcba9876543210 - i, 0x1000 + i, 0x8899aabb + i,
                                             (uint8_t)(1 + 23 * i), (uint8_t)i};
    return c;
}

struct rpma_conn_private_data packed_exactly(const unsigned char *bytes, size_t size) {
    void *copy = test_malloc(size ? size : 1);
    memcpy(copy, bytes, size);
    return (struct rpma_conn_private_data){copy, (uint8_t)size};
}

struct rpma_mr_remote *packed_remote(uint64_t addr, uint64_t size, uint32_t rkey, uint8_t usage,
                                     uint8_t native_usage) {
    const struct packed c = {.regions = 1,
                             .region = {{addr, size, rkey, usage, native_usage}},
                             .direct_write = PACKED_NO_CAPABILITIES};
    unsigned char bytes[PACKED_HEADER + PACKED_REGION];
    const struct rpma_conn_private_data pdata = {bytes, (uint8_t)packed_form(&c, bytes)};
    struct rpma_mr_remote *remote = NULL;
    uint32_t nmrs = 1;
    MUST(rpma_conn_private_data_unpack(&pdata, &remote, &nmrs, NULL, NULL, NULL));
    return remote;
}
