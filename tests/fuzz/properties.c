// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// properties.c -- random regions and configurations: decoding an encoded one gives it back,
// every shorter input is refused, and longer inputs mean the same
//
// properties [SEED] takes other random numbers.

#include "random.h"
#include "world.h"

enum { REGIONS = 3000, PER_WORLD = 30, MR_SIZE = 21, PCFG_SIZE = 1, LONGEST = 64 };

// Small, large and extreme values alike.
static uint64_t random_size(void) {
    const uint64_t value = random_64() >> (random_64() % 64);
    return random_64() % 50 == 0 ? UINT64_MAX : value;
}

struct region {
    uint64_t addr, size;
    uint32_t rkey;
    int usage;
};

// Copies the bytes to a block of this exact size, so that sanitizers notice an overrun.
static unsigned char *exactly(const unsigned char *bytes, size_t size) {
    unsigned char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    return copy;
}

// Whether the region ends behind the last address.
static bool ends_behind(const struct region *region) {
    return region->size > UINT64_MAX - region->addr;
}

static void expect_same(const struct region *region, struct rpma_mr_remote *remote) {
    size_t size = 0;
    int flush_type = -1;
    const uint64_t offset = random_64();
    assert_int_equal(rpma_mr_remote_get_size(remote, &size), 0);
    assert_int_equal(size, region->size);
    assert_int_equal(rpma_mr_remote_get_flush_type(remote, &flush_type), 0);
    assert_int_equal(flush_type, region->usage & (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                                                  RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT));
    MUST(rpma_read(w.h.conn, w.h.mr, 0, remote, offset, 8, RPMA_F_COMPLETION_ALWAYS, NULL));
    const struct fake_call *call = fake_last("ibv_post_send");
    assert_true(call->send.remote_addr == region->addr + offset);
    assert_int_equal(call->send.rkey, region->rkey);
}

static void decode(const struct region *region, const unsigned char *desc, size_t size) {
    struct rpma_mr_remote *const untouched = (struct rpma_mr_remote *)&w, *remote = untouched;
    unsigned char *copy = exactly(desc, size);
    const int ret = rpma_mr_remote_from_descriptor(copy, size, &remote);
    memset(copy, 0, size);
    free(copy); // the region does not use the bytes any more
    assert_int_equal(ret, size < MR_SIZE || ends_behind(region) ? RPMA_E_INVAL : 0);
    if (ret == 0) {
        expect_same(region, remote);
        MUST(rpma_mr_remote_delete(&remote));
    } else {
        assert_ptr_equal(remote, untouched);
    }
}

static void a_region_survives_its_descriptor(void) {
    unsigned char desc[LONGEST];
    struct rpma_mr_local *mr = NULL;
    struct region region = {random_size(), random_size(), 0, 1 + (int)(random_64() % 255)};
    region.addr += region.addr == 0;
    region.size += region.size == 0;
    void *ptr = (void *)(uintptr_t)region.addr; // the fakes do not read this memory
    MUST(rpma_mr_reg(w.h.peer, ptr, region.size, region.usage, &mr));
    region.rkey = fake_rkey(ptr);
    for (size_t i = 0; i < sizeof(desc); i++)
        desc[i] = (unsigned char)random_64();
    MUST(rpma_mr_get_descriptor(mr, desc));
    for (size_t size = 0; size <= sizeof(desc); size++)
        decode(&region, desc, size);
    MUST(rpma_mr_dereg(&mr));
}

static void regions(void **state) {
    (void)state;
    for (int i = 0; i < REGIONS / PER_WORLD; i++) {
        fake_reset();
        assert_true(world_conn(&w, &(const struct shape){0}));
        for (int k = 0; k < PER_WORLD; k++)
            a_region_survives_its_descriptor();
        world_drop(&w);
        unit_nothing_left("after some regions");
    }
}

// Sets each bit of address, size and key alone.
static void single_bits(void **state) {
    (void)state;
    enum { BITS = 64 + 64 + 32 };
    assert_true(world_conn(&w, &(const struct shape){0}));
    for (int bit = 0; bit < BITS; bit++) {
        struct region region = {0, 0, 0, 1 + bit};
        if (bit < 64)
            region.addr = 1ull << bit;
        else if (bit < 128)
            region.size = 1ull << (bit - 64);
        else
            region.rkey = 1u << (bit - 128);
        unsigned char desc[MR_SIZE];
        world_descriptor(desc, region.addr, region.size, region.rkey, (uint8_t)region.usage);
        decode(&region, desc, sizeof(desc));
    }
    world_drop(&w);
}

static void peer_configurations(void **state) {
    (void)state;
    for (int value = 0; value <= 0xff; value++) {
        for (size_t size = 0; size <= LONGEST; size++) {
            unsigned char desc[LONGEST], again = 0xff;
            struct rpma_peer_cfg *const untouched = (struct rpma_peer_cfg *)&w,
                                        *pcfg = untouched;
            bool supported = false;
            memset(desc, value, sizeof(desc));
            unsigned char *copy = exactly(desc, size);
            const int ret = rpma_peer_cfg_from_descriptor(copy, size, &pcfg);
            free(copy);
            assert_int_equal(ret, size < PCFG_SIZE ? RPMA_E_INVAL : 0);
            if (ret != 0) {
                assert_ptr_equal(pcfg, untouched);
                continue;
            }
            MUST(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &supported));
            assert_int_equal(supported, value != 0);
            MUST(rpma_peer_cfg_get_descriptor(pcfg, &again));
            // The decoder keeps a byte that states device features; all other bytes mean yes or
            // no.
            assert_int_equal(again, (value & ~6) == 0xa1 ? value : supported);
            MUST(rpma_peer_cfg_delete(&pcfg));
        }
    }
}

static const struct CMUnitTest tests[] = {
    TEST(regions),
    TEST(single_bits),
    TEST(peer_configurations),
};

RANDOM_MAIN(tests)
