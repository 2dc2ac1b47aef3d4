// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// private_data.c -- packing and unpacking of private data

#include "packed.h"

// ---- packing -------------------------------------------------------------------------------

static struct rpma_mr_local *mrs[PACKED_MAX_REGIONS + 1];

// Creates a peer and regions with every usage, and describes them in c. The addresses are
// never accessed.
static void register_all(struct packed *c) {
    fixture_peer(&w);
    for (unsigned i = 0; i < LENGTH(mrs); i++) {
        // The highest bit is set in the address or in the size.
        struct packed_region r = {.addr = (i % 2 ? 0xf122334455667788 : 0x1122334455667788) +
                                          0x1000 * i,
                                  .size = (i % 2 ? 0x0123456789ab : 0xd123456789abcdef) + i,
                                  .usage = (uint8_t)(0xff - 13 * i)};
        void *const ptr = (void *)(uintptr_t)r.addr;
        const int atomic = i % 2 ? RPMA_MR_USAGE_ATOMIC : 0;
        MUST(rpma_mr_reg(w.h.peer, ptr, r.size, r.usage | atomic, &mrs[i]));
        r.rkey = fake_rkey(ptr);
        if (fake_profile()->has_native_flush && BUILD_FLUSHES)
            r.native_usage =
                r.usage & (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                           (fake_device()->pmem ? RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT : 0));
        r.native_usage |= atomic ? PACKED_ATOMICS : 0;
        if (i < PACKED_MAX_REGIONS)
            c->region[i] = r;
    }
}

static void deregister_all(void) {
    for (unsigned i = 0; i < LENGTH(mrs); i++)
        MUST(rpma_mr_dereg(&mrs[i]));
    fixture_delete(&w);
}

static unsigned char counting[PACKED_MAX];

static void pack_and_compare(const struct packed *c) {
    const struct rpma_mr_local *some[LENGTH(mrs)];
    unsigned char wanted[2 * PACKED_MAX], bytes[PACKED_MAX + 1];
    const size_t size = packed_form(c, wanted);
    const struct rpma_peer_cfg *pcfg =
        c->direct_write == PACKED_NO_CAPABILITIES ? NULL : w.h.pcfg;
    const uint8_t room = size % 2 ? PACKED_MAX : (uint8_t)size;
    struct rpma_conn_private_data pdata = {bytes, room};
    for (unsigned i = 0; i < c->regions; i++)
        some[i] = mrs[i];
    memset(bytes, 0x77, sizeof(bytes));
    MUST(rpma_conn_private_data_pack(c->regions ? some : NULL, c->regions, pcfg,
                                     c->len ? counting : NULL, c->len, &pdata));
    EXPECT_CALLS("");
    assert_ptr_equal(pdata.ptr, bytes);
    assert_int_equal(pdata.len, size);
    assert_memory_equal(bytes, wanted, size);
    for (size_t i = size; i < sizeof(bytes); i++)
        assert_int_equal(bytes[i], 0x77);
}

// Packs every combination of regions, configuration and bytes of the program.
static void pack_each(struct packed *c, unsigned device) {
    static const unsigned regions[] = {0, 1, 2, PACKED_MAX_REGIONS};
    for (size_t i = 0; i < LENGTH(regions); i++)
        for (int variant = 0; variant < 4; variant++) {
            c->regions = regions[i];
            c->direct_write = variant == 3 ? PACKED_NO_CAPABILITIES : variant & 1;
            // A configuration without capabilities gets the capabilities of the device of the
            // first region.
            c->served = variant == 2 ? 0xa0 : c->regions ? device : 0;
            const unsigned used = PACKED_HEADER + c->regions * PACKED_REGION +
                                  (variant == 3 ? 0 : PACKED_CAPABILITIES);
            const unsigned lens[] = {0, 1, PACKED_MAX - used};
            MUST(rpma_peer_cfg_delete(&w.h.pcfg));
            if (variant == 2) // advertises neither operation
                MUST(rpma_peer_cfg_from_descriptor((unsigned char[]){SERVES}, 1, &w.h.pcfg));
            else
                MUST(rpma_peer_cfg_new(&w.h.pcfg));
            MUST(rpma_peer_cfg_set_direct_write_to_pmem(w.h.pcfg, variant & 1));
            for (size_t l = 0; l < LENGTH(lens); l++) {
                c->len = lens[l];
                pack_and_compare(c);
            }
        }
}

TEST_THAT(packed_bytes_follow_the_format) {
    for (unsigned device = 0; device < 8; device++) {
        static struct packed c;
        const bool flushes = device & 1, writes_atomically = device & 2, pmem = device & 4;
        fake_reset();
        fake_profile()->has_native_flush = flushes;
        fake_profile()->has_native_atomic_write = writes_atomically;
        fake_device()->pmem = pmem;
        register_all(&c);
        pack_each(&c, 0xa0u | (flushes && BUILD_FLUSHES ? 2 : 0) |
                          (writes_atomically && BUILD_WRITES_ATOMICALLY ? 4 : 0));
        deregister_all();
    }
}

static unsigned served_by(bool native) {
    return 0xa0u | (native && BUILD_FLUSHES ? SERVES_FLUSH : 0) |
           (native && BUILD_WRITES_ATOMICALLY ? SERVES_ATOMIC_WRITE : 0);
}

// Each region has the capabilities of its own device. The capabilities of the first region
// apply to the connection, unless the configuration advertises others.
TEST_THAT(regions_of_different_devices_are_packed_together) {
    for (int first = 0; first < 2; first++) {
        static struct packed c;
        struct rpma_peer *peers[2];
        memset(&c, 0, sizeof(c));
        fixture_reset();
        for (int i = 0; i < 2; i++) {
            const bool native = i == 0 ? first : !first;
            fake_profile()->has_native_flush = fake_profile()->has_native_atomic_write = native;
            fake_device()->pmem = true;
            MUST(rpma_peer_new(fake_context(i), &peers[i]));
            MUST(rpma_mr_reg(peers[i], w.memory + i, 8, FIXTURE_EVERY_USAGE, &mrs[i]));
            c.region[i] = (struct packed_region){(uintptr_t)w.memory + (unsigned)i, 8,
                                                 fake_rkey(w.memory + i), FIXTURE_EVERY_USAGE,
                                                 native && BUILD_FLUSHES
                                                     ? RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                                                           RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT
                                                     : 0};
        }
        c.regions = 2;
        c.direct_write = true;
        MUST(rpma_peer_cfg_new(&w.h.pcfg));
        MUST(rpma_peer_cfg_set_direct_write_to_pmem(w.h.pcfg, true));
        c.served = served_by(first);
        pack_and_compare(&c);
        MUST(rpma_peer_cfg_set_served_by(w.h.pcfg, peers[1]));
        c.served = served_by(!first);
        pack_and_compare(&c);
        // Any build can receive these and pass them on.
        for (c.served = 0xa0; c.served <= 0xa6; c.served += 2) {
            const unsigned char desc = (unsigned char)(1 | c.served);
            MUST(rpma_peer_cfg_delete(&w.h.pcfg));
            MUST(rpma_peer_cfg_from_descriptor(&desc, 1, &w.h.pcfg));
            pack_and_compare(&c);
        }
        for (int i = 0; i < 2; i++) {
            MUST(rpma_mr_dereg(&mrs[i]));
            MUST(rpma_peer_delete(&peers[i]));
        }
    }
}

TEST_THAT(pack_refuses_every_smaller_buffer) {
    enum { REGIONS = PACKED_MAX_REGIONS, ONE_MORE = PACKED_MAX - PACKED_HEADER + 1 };
    static const struct {
        uint32_t regions, len;
        unsigned from, to; // sizes of the buffer
        const char *logs;
    } cases[] = {
        {2, 3, 0, 54, "needed are 55 (regions: 2, a configuration, bytes of the program: 3)"},
        // In each row, another part makes the data too long for an 8-bit length.
        {REGIONS + 1, 0, PACKED_MAX, PACKED_MAX, "pdata->len is 255"},
        {0, ONE_MORE, PACKED_MAX, PACKED_MAX, "pdata->len is 255"},
        {0, UINT32_MAX, PACKED_MAX, PACKED_MAX, "pdata->len is 255"},
        {REGIONS, ONE_MORE - REGIONS * PACKED_REGION, PACKED_MAX, PACKED_MAX,
         "pdata->len is 255"},
    };
    static struct packed c;
    unsigned char bytes[PACKED_MAX] = {0};
    register_all(&c);
    for (size_t i = 0; i < LENGTH(cases); i++)
        for (unsigned size = cases[i].from; size <= cases[i].to; size++) {
            struct rpma_conn_private_data pdata = {bytes, (uint8_t)size};
            WATCH(bytes);
            WATCH(pdata.ptr);
            WATCH(pdata.len);
            EXPECT_ERROR(rpma_conn_private_data_pack((const struct rpma_mr_local *const *)mrs,
                                                     cases[i].regions, i ? NULL : w.h.pcfg,
                                                     counting, cases[i].len, &pdata),
                         RPMA_E_INVAL, "pdata->len <", "pdata->len < size of what is packed",
                         .logs = cases[i].logs);
        }
    deregister_all();
}

// ---- unpacking -----------------------------------------------------------------------------

static struct outputs {
    struct rpma_mr_remote *mrs[PACKED_MAX_REGIONS];
    struct rpma_peer_cfg *pcfg;
    const void *bytes;
    uint32_t nmrs, len;
} out;

static void expect_region(const struct packed_region *r, struct rpma_mr_remote *mr) {
    uint64_t addr = 0;
    uint32_t rkey = 0;
    size_t size = 0;
    int flush_type = -1;
    MUST(rpma_mr_remote_get_key(mr, &addr, &rkey));
    MUST(rpma_mr_remote_get_size(mr, &size));
    MUST(rpma_mr_remote_get_flush_type(mr, &flush_type));
    assert_true(addr == r->addr && rkey == r->rkey && size == r->size);
    assert_int_equal(flush_type, r->usage & (RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY |
                                             RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT));
}

static void expect_configuration(const struct packed *c) {
    bool direct_write = false, is_advertised = false, flush = false, atomic_write = false;
    assert_int_equal(out.pcfg != NULL, c->direct_write != PACKED_NO_CAPABILITIES);
    if (!out.pcfg)
        return;
    MUST(rpma_peer_cfg_get_direct_write_to_pmem(out.pcfg, &direct_write));
    MUST(rpma_peer_cfg_get_served(out.pcfg, &is_advertised, &flush, &atomic_write));
    const bool advertises = (c->served & 0xf9) == 0xa0; // any other byte has no capabilities
    assert_int_equal(direct_write, c->direct_write);
    assert_int_equal(is_advertised, advertises);
    assert_int_equal(flush, advertises && c->served & 2);
    assert_int_equal(atomic_write, advertises && c->served & 4);
}

// The network appends zeros. The unpacked objects must not point into the data.
static void unpack_and_compare(const struct packed *c) {
    static const size_t messages[] = {0, 56, 196, PACKED_MAX};
    unsigned char bytes[2 * PACKED_MAX] = {0};
    const size_t size = packed_form(c, bytes);
    for (size_t i = 0; i < LENGTH(messages); i++) {
        if (messages[i] && messages[i] < size)
            continue;
        struct rpma_conn_private_data pdata =
            packed_exactly(bytes, messages[i] ? messages[i] : size);
        memset(&out, 0x5a, sizeof(out));
        out.nmrs = c->regions;
        MUST(rpma_conn_private_data_unpack(&pdata, out.mrs, &out.nmrs, &out.pcfg, &out.bytes,
                                           &out.len));
        EXPECT_CALLS("");
        assert_int_equal(out.nmrs, c->regions);
        assert_int_equal(out.len, c->len);
        assert_ptr_equal(out.bytes, c->len ? (unsigned char *)pdata.ptr + size - c->len : NULL);
        if (c->len)
            assert_memory_equal(out.bytes, counting, c->len);
        memset(pdata.ptr, 0, pdata.len);
        test_free(pdata.ptr);
        for (unsigned r = 0; r < c->regions; r++) {
            expect_region(&c->region[r], out.mrs[r]);
            MUST(rpma_mr_remote_delete(&out.mrs[r]));
        }
        expect_configuration(c);
        if (out.pcfg)
            MUST(rpma_peer_cfg_delete(&out.pcfg));
    }
}

// All values are little endian.
TEST_THAT(bytes_follow_the_format) {
    // clang-format off
    static const unsigned char wanted[] = {
        0xf5, 1, 1, 22, 2, 3,                           // header
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, // address
        0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, // size
        0xdd, 0xcc, 0xbb, 0xaa, 0x21, 0x00,             // key, usage, native flushes
        0xa5, 0xa4,                                     // capabilities
        1, 2, 3};
    // clang-format on
    const struct packed c = {
        .regions = 1,
        .region = {{0x1122334455667788, 0x0123456789abcdef, 0xaabbccdd, 0x21, 0}},
        .direct_write = true,
        .served = 0xa4,
        .len = 3};
    unsigned char bytes[PACKED_MAX];
    assert_int_equal(packed_form(&c, bytes), sizeof(wanted));
    assert_memory_equal(bytes, wanted, sizeof(wanted));
    unpack_and_compare(&c);
    bytes[sizeof(wanted) - 5] = 1; // direct write only; the next byte has the capabilities
    const struct rpma_conn_private_data pdata = {bytes, sizeof(wanted)};
    MUST(rpma_conn_private_data_unpack(&pdata, NULL, NULL, &out.pcfg, NULL, NULL));
    expect_configuration(&c);
    MUST(rpma_peer_cfg_delete(&out.pcfg));
}

// Data of a later release has longer parts.
TEST_THAT(unpack_follows_the_format) {
    static const unsigned regions[] = {0, 1, 2, PACKED_MAX_REGIONS},
                          more[] = {0, 1, 19, 106, 126, 200}; // sizes with the highest bit
    for (size_t r = 0; r < LENGTH(regions); r++)
        for (size_t m = 0; m < LENGTH(more); m++)
            for (int direct_write = PACKED_NO_CAPABILITIES; direct_write < 2; direct_write++) {
                unsigned char bytes[4 * PACKED_MAX];
                if (regions[r] * more[m] > PACKED_MAX)
                    continue;
                struct packed c = packed_arbitrary(regions[r], direct_write, 0xa2, 0, more[m]);
                const size_t size = packed_form(&c, bytes);
                if (size > PACKED_MAX)
                    continue;
                unpack_and_compare(&c);
                c.len = (unsigned)(PACKED_MAX - size);
                unpack_and_compare(&c);
            }
    for (unsigned served = 0; served <= UINT8_MAX; served++) {
        const struct packed c = packed_arbitrary(0, true, served, 1, 0);
        unpack_and_compare(&c);
    }
}

TEST_THAT(unread_log_lines_are_not_formatted) {
    unsigned char bytes[2 * PACKED_MAX];
    const struct packed c = packed_arbitrary(3, true, 0xa6, 5, 0);
    const struct rpma_conn_private_data pdata = {bytes, (uint8_t)packed_form(&c, bytes)};
    MUST(rpma_conn_private_data_unpack(&pdata, NULL, NULL, NULL, NULL, NULL));
    out = (struct outputs){.nmrs = 0};
    MUST(rpma_conn_private_data_unpack(&pdata, NULL, &out.nmrs, NULL, NULL, &out.len));
    assert_int_equal(out.nmrs, 3);
    assert_int_equal(out.len, 5);
    out.nmrs = PACKED_MAX_REGIONS; // more than the number of regions
    MUST(rpma_conn_private_data_unpack(&pdata, out.mrs, &out.nmrs, NULL, NULL, NULL));
    assert_int_equal(out.nmrs, 3);
    for (int i = 0; i < 3; i++) {
        expect_region(&c.region[i], out.mrs[i]);
        MUST(rpma_mr_remote_delete(&out.mrs[i]));
    }
    assert_null(out.mrs[3]);
}

// ../properties/failure_lines.tsv has invalid regions, short arrays and failed allocations.

static void expect_refused(const unsigned char *bytes, size_t size, const char *condition,
                           const char *logs) {
    struct rpma_conn_private_data pdata = packed_exactly(bytes, size);
    memset(&out, 0x5a, sizeof(out));
    out.nmrs = PACKED_MAX_REGIONS;
    WATCH(out);
    EXPECT_ERROR(rpma_conn_private_data_unpack(&pdata, out.mrs, &out.nmrs, &out.pcfg,
                                               &out.bytes, &out.len),
                 RPMA_E_INVAL, condition, condition, .logs = logs,
                 .level = RPMA_LOG_LEVEL_INFO);
    // Rejected even if the caller passes no outputs.
    EXPECT_ERROR(rpma_conn_private_data_unpack(&pdata, NULL, NULL, NULL, NULL, NULL),
                 RPMA_E_INVAL, condition, condition, .logs = logs,
                 .level = RPMA_LOG_LEVEL_INFO);
    test_free(pdata.ptr);
}

static const char not_packed[] = "the data was not packed by rpma_conn_private_data_pack()",
                  is_cut[] = "the data is shorter than what was packed";

TEST_THAT(unpack_refuses_truncated_data) {
    unsigned char bytes[2 * PACKED_MAX];
    const struct packed c = packed_arbitrary(2, true, 0xa6, 3, 0);
    const size_t whole = packed_form(&c, bytes);
    for (size_t size = 0; size < whole; size++)
        expect_refused(bytes, size, size < PACKED_HEADER ? not_packed : is_cut,
                       size < PACKED_HEADER ? "not packed" : "needed are 55");
}

// One region, capabilities and three bytes, in a longer message. All values of a row are
// rejected for the same reason; the line names an unknown version.
TEST_THAT(unpack_refuses_other_headers) {
    static const struct {
        unsigned at, from, to;
        const char *condition, *logs;
    } cases[] = {
        {0, 0, 0xf4, not_packed, "not packed"},
        {0, 0xf6, UINT8_MAX, not_packed, "not packed"},
        {1, 0, 0, "the data is of another version",
         "has version 0, this library supports version 1"},
        {1, 2, UINT8_MAX, "the data is of another version", "has version "},
        {2, 12, UINT8_MAX, is_cut, "is truncated"},
        {2, UINT8_MAX, UINT8_MAX, is_cut, "needed are 5621"},
        {3, 0, PACKED_REGION - 1, "a region of the data has less than 22 bytes",
         "the size of a region in the private data is "},
        {4, 1, 1, "the capabilities of the data have 1 byte",
         "the size of the capabilities in the private data is 1, at least 2 are needed"},
    };
    unsigned char bytes[2 * PACKED_MAX] = {0};
    const struct packed c = packed_arbitrary(1, true, 0xa6, 3, 0);
    for (size_t i = 0; i < LENGTH(cases); i++)
        for (unsigned value = cases[i].from; value <= cases[i].to; value++) {
            packed_form(&c, bytes);
            bytes[cases[i].at] = (unsigned char)value;
            expect_refused(bytes, PACKED_MAX, cases[i].condition, cases[i].logs);
        }
    const struct rpma_conn_private_data none = {NULL, 56};
    EXPECT_ERROR(rpma_conn_private_data_unpack(&none, NULL, NULL, NULL, NULL, NULL),
                 RPMA_E_INVAL, not_packed, not_packed, .logs = "not packed",
                 .level = RPMA_LOG_LEVEL_INFO);
}

int main(int argc, char **argv) {
    for (size_t i = 0; i < sizeof(counting); i++)
        counting[i] = (unsigned char)(1 + i);
    return unit_main(argc, argv);
}
