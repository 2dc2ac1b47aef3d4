// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// private_data.c -- fuzzes rpma_conn_private_data_unpack(): the bytes come from the other side

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

enum { HEADER = 6, REGION = 22, STATEMENT = 2, LONGEST = 255, MOST_REGIONS = 11 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// The offsets of the parts, as the manual describes the format.
struct parts {
    size_t regions, statement, bytes, end;
};

static struct parts parts_of(const uint8_t *data) {
    struct parts p = {.regions = HEADER};
    p.statement = p.regions + (size_t)data[2] * data[3];
    p.bytes = p.statement + data[4];
    p.end = p.bytes + data[5];
    return p;
}

static bool is_good(const uint8_t *data, size_t size) {
    if (size < HEADER || data[0] != 0xf5 || data[1] != 1 || size < parts_of(data).end ||
        (data[2] != 0 && data[3] < REGION) || (data[4] != 0 && data[4] < STATEMENT))
        return false;
    for (size_t i = 0; i < data[2]; i++)
        if (!fuzz_is_region(data + HEADER + i * data[3]))
            return false;
    return true;
}

static void check_region(const uint8_t *region, struct rpma_mr_remote **mr) {
    uint64_t addr = 0;
    uint32_t rkey = 0;
    size_t size = 0;
    FUZZ_EXPECT(rpma_mr_remote_get_key(*mr, &addr, &rkey) == 0);
    FUZZ_EXPECT(rpma_mr_remote_get_size(*mr, &size) == 0);
    FUZZ_EXPECT(addr == fuzz_number(region) && size == fuzz_number(region + 8));
    FUZZ_EXPECT(rkey == (fuzz_number(region + 16 - 4) >> 32));
    FUZZ_EXPECT(rpma_mr_remote_delete(mr) == 0);
}

static void check_statement(const uint8_t *statement, struct rpma_peer_cfg **pcfg) {
    bool supported = false, is_stated = false, flush = false, atomic_write = false;
    const bool states = (statement[1] & ~6) == 0xa0;
    FUZZ_EXPECT(rpma_peer_cfg_get_direct_write_to_pmem(*pcfg, &supported) == 0);
    FUZZ_EXPECT(rpma_peer_cfg_get_served(*pcfg, &is_stated, &flush, &atomic_write) == 0);
    FUZZ_EXPECT(supported == (statement[0] != 0) && is_stated == states);
    FUZZ_EXPECT(flush == (states && statement[1] & 2));
    FUZZ_EXPECT(atomic_write == (states && statement[1] & 4));
    FUZZ_EXPECT(rpma_peer_cfg_delete(pcfg) == 0);
}

static void check(const uint8_t *data, size_t size) {
    struct rpma_mr_remote *const no_mr = (struct rpma_mr_remote *)&size;
    struct rpma_mr_remote *mrs[MOST_REGIONS] = {no_mr};
    struct rpma_peer_cfg *const no_pcfg = (struct rpma_peer_cfg *)&size, *pcfg = no_pcfg;
    const struct rpma_conn_private_data pdata = {(void *)(uintptr_t)data, (uint8_t)size};
    const void *bytes = &size;
    uint32_t count = MOST_REGIONS, len = LONGEST + 1;
    const bool good = is_good(data, size);
    const int ret = rpma_conn_private_data_unpack(&pdata, mrs, &count, &pcfg, &bytes, &len);
    FUZZ_EXPECT(ret == (good ? 0 : RPMA_E_INVAL));
    fuzz_count(good);
    if (!good) {
        FUZZ_EXPECT(mrs[0] == no_mr && pcfg == no_pcfg && bytes == &size);
        FUZZ_EXPECT(count == MOST_REGIONS && len == LONGEST + 1);
        return;
    }
    const struct parts p = parts_of(data);
    FUZZ_EXPECT(count == data[2] && len == data[5]);
    FUZZ_EXPECT(bytes == (len != 0 ? data + p.bytes : NULL));
    for (size_t i = 0; i < count; i++)
        check_region(data + p.regions + i * data[3], &mrs[i]);
    FUZZ_EXPECT((pcfg != NULL) == (data[4] != 0));
    if (pcfg)
        check_statement(data + p.statement, &pcfg);
}

// Decodes the input as it is, then with a header whose counts fit its size.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check(data, size);
    if (size < HEADER)
        return 0;
    uint8_t *mended = malloc(size);
    FUZZ_EXPECT(mended != NULL);
    memcpy(mended, data, size);
    mended[0] = 0xf5;
    mended[1] = 1;
    mended[2] %= MOST_REGIONS + 1;
    mended[3] = (uint8_t)(REGION - 1 + data[3] % 4);
    mended[4] %= 4;
    mended[5] %= 64;
    check(mended, size);
    free(mended);
    return 0;
}
