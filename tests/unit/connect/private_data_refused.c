// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// private_data_refused.c -- private data that does not have the packed form, and failed
// allocations

#include "packed.h"

#include <stdio.h>

static struct outputs {
    struct rpma_mr_remote *mrs[PACKED_MOST_REGIONS];
    struct rpma_peer_cfg *pcfg;
    const void *bytes;
    uint32_t nmrs, len;
} out;

static void expect_refused(const unsigned char *bytes, size_t size, const char *condition,
                           const char *logs) {
    struct rpma_conn_private_data pdata = packed_exactly(bytes, size);
    // Refused even if the caller wants no objects, unless the error is within a region.
    const bool looks = strstr(condition, "region (") || strstr(condition, "usage");
    memset(&out, 0x5a, sizeof(out));
    out.nmrs = PACKED_MOST_REGIONS;
    WATCH(out);
    EXPECT_ERROR(rpma_conn_private_data_unpack(&pdata, out.mrs, &out.nmrs, &out.pcfg,
                                               &out.bytes, &out.len),
                 RPMA_E_INVAL, condition, condition, .logs = logs,
                 .level = RPMA_LOG_LEVEL_INFO);
    if (looks)
        MUST(rpma_conn_private_data_unpack(&pdata, NULL, NULL, NULL, NULL, NULL));
    else
        EXPECT_ERROR(rpma_conn_private_data_unpack(&pdata, NULL, NULL, NULL, NULL, NULL),
                     RPMA_E_INVAL, condition, condition, .logs = logs,
                     .level = RPMA_LOG_LEVEL_INFO);
    test_free(pdata.ptr);
}

static const char not_packed[] = "the data was not packed by rpma_conn_private_data_pack()",
                  is_cut[] = "the data is shorter than what was packed";

TEST_THAT(unpack_refuses_what_is_cut) {
    unsigned char bytes[2 * PACKED_MOST];
    const struct packed c = packed_made_up(2, true, 0xa6, 3, 0);
    const size_t whole = packed_form(&c, bytes);
    for (size_t size = 0; size < whole; size++)
        expect_refused(bytes, size, size < PACKED_HEADER ? not_packed : is_cut,
                       size < PACKED_HEADER ? "not packed" : "is cut");
    bytes[2] = UINT8_MAX; // more regions than a message can have
    expect_refused(bytes, PACKED_MOST, is_cut, "needed are 5621");
}

TEST_THAT(unpack_refuses_other_data) {
    unsigned char bytes[2 * PACKED_MOST];
    const struct rpma_conn_private_data none = {NULL, 0}, nowhere = {NULL, 56};
    const struct packed c = packed_made_up(1, true, 0xa6, 3, 0);
    packed_form(&c, bytes);
    for (unsigned other = 0; other <= UINT8_MAX; other++) {
        char line[64];
        snprintf(line, sizeof(line), "has version %u, this library knows version 1", other);
        bytes[0] = (unsigned char)other;
        if (other != 0xf5)
            expect_refused(bytes, 56, not_packed, "not packed");
        bytes[0] = 0xf5;
        bytes[1] = (unsigned char)other;
        if (other != 1)
            expect_refused(bytes, 56, "the data is of another version", line);
        bytes[1] = 1;
    }
    EXPECT_ERROR(rpma_conn_private_data_unpack(&none, NULL, NULL, NULL, NULL, NULL),
                 RPMA_E_INVAL, not_packed, not_packed, .logs = "not packed",
                 .level = RPMA_LOG_LEVEL_INFO);
    EXPECT_ERROR(rpma_conn_private_data_unpack(&nowhere, NULL, NULL, NULL, NULL, NULL),
                 RPMA_E_INVAL, not_packed, not_packed, .logs = "not packed",
                 .level = RPMA_LOG_LEVEL_INFO);
}

TEST_THAT(unpack_refuses_parts_that_are_too_small) {
    static const unsigned char regions[] = {1, 2, UINT8_MAX};
    unsigned char bytes[PACKED_MOST] = {0xf5, 1};
    for (size_t r = 0; r < LENGTH(regions); r++)
        for (unsigned size = 0; size < PACKED_REGION; size++) {
            const bool fits = PACKED_HEADER + size * regions[r] <= PACKED_MOST;
            bytes[2] = regions[r];
            bytes[3] = (unsigned char)size;
            expect_refused(bytes, sizeof(bytes),
                           fits ? "a region of the data has less than 22 bytes" : is_cut,
                           fits ? "at least 22 are needed" : "is cut");
        }
    bytes[2] = 0; // without regions, none is too small
    bytes[4] = 1;
    expect_refused(bytes, sizeof(bytes), "the statement of the data has 1 byte",
                   "at least 2 are needed");
}

TEST_THAT(unpack_refuses_what_describes_no_region) {
    unsigned char bytes[2 * PACKED_MOST];
    for (unsigned bad = 0; bad < 3; bad++) {
        struct packed c = packed_made_up(3, true, 0xa6, 1, 0);
        c.region[bad].usage = 0;
        expect_refused(bytes, packed_form(&c, bytes), "a region of the data names no usage",
                       "has no usage");
        c.region[bad].usage = 1;
        c.region[bad].size = UINT64_MAX - c.region[bad].addr + 1;
        expect_refused(bytes, packed_form(&c, bytes),
                       "the region (address at offset 0, size at offset 8) ends behind the "
                       "last address",
                       "ends behind the last address");
    }
}

TEST_THAT(unpack_needs_room_for_the_regions) {
    unsigned char bytes[2 * PACKED_MOST];
    const struct packed c = packed_made_up(PACKED_MOST_REGIONS, PACKED_NO_STATEMENT, 0, 2, 0);
    const struct rpma_conn_private_data pdata = {bytes, (uint8_t)packed_form(&c, bytes)};
    for (out.nmrs = 0; out.nmrs < PACKED_MOST_REGIONS; out.nmrs++) {
        WATCH(out);
        EXPECT_ERROR(rpma_conn_private_data_unpack(&pdata, out.mrs, &out.nmrs, &out.pcfg,
                                                   &out.bytes, &out.len),
                     RPMA_E_INVAL, "*nmrs <", "*nmrs < number of regions in the data",
                     .logs = "the number of regions in the private data is 11",
                     .level = RPMA_LOG_LEVEL_INFO);
    }
    const struct packed one = packed_made_up(1, PACKED_NO_STATEMENT, 0, 2, 0);
    const struct rpma_conn_private_data single = {bytes, (uint8_t)packed_form(&one, bytes)};
    out.nmrs = 0;
    EXPECT_ERROR(rpma_conn_private_data_unpack(&single, out.mrs, &out.nmrs, NULL, NULL, NULL),
                 RPMA_E_INVAL, "*nmrs <", "*nmrs < number of regions in the data",
                 .logs = "*nmrs is 0, the number of regions in the private data is 1",
                 .level = RPMA_LOG_LEVEL_INFO);
}

TEST_THAT(unpack_makes_all_or_nothing) {
    unsigned char bytes[2 * PACKED_MOST];
    const struct packed c = packed_made_up(PACKED_MOST_REGIONS - 1, true, 0xa6, 3, 0);
    const struct rpma_conn_private_data pdata = {bytes, (uint8_t)packed_form(&c, bytes)};
    for (unsigned nth = 1; nth <= PACKED_MOST_REGIONS; nth++) {
        fake_fail("malloc", nth, ENOMEM);
        memset(&out, 0x5a, sizeof(out));
        out.nmrs = PACKED_MOST_REGIONS;
        WATCH(out);
        EXPECT_ERROR(rpma_conn_private_data_unpack(&pdata, out.mrs, &out.nmrs, &out.pcfg,
                                                   &out.bytes, &out.len),
                     RPMA_E_NOMEM, "allocation failed", "out of memory");
        fake_faults_off();
    }
}
