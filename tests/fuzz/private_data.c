// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// private_data.c -- fuzzes rpma_conn_private_data_unpack(): the bytes come from the other side

#include "fuzz.h"

enum { HEADER = 3, MR_SIZE = 21, LONGEST = 255 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What the manual says of the format, of bytes whose first one may be wrong.
static bool is_good(const uint8_t *data, size_t size) {
    if (size < HEADER || data[0] != 0xf5 || size < (size_t)HEADER + data[1] + data[2])
        return false;
    return data[1] == 0 || (data[1] >= MR_SIZE && fuzz_is_region(data + HEADER));
}

static void check(const uint8_t *data, size_t size) {
    struct rpma_mr_remote *const no_mr = (struct rpma_mr_remote *)&size, *mr = no_mr;
    struct rpma_peer_cfg *const no_pcfg = (struct rpma_peer_cfg *)&size, *pcfg = no_pcfg;
    const struct rpma_conn_private_data pdata = {(void *)(uintptr_t)data, (uint8_t)size};
    struct rpma_conn_private_data rest = {(void *)&size, 7};
    const bool good = is_good(data, size);
    const int ret = rpma_conn_private_data_unpack(&pdata, &mr, &pcfg, &rest);
    FUZZ_EXPECT(ret == (good ? 0 : RPMA_E_INVAL));
    fuzz_count(good);
    if (!good) {
        FUZZ_EXPECT(mr == no_mr && pcfg == no_pcfg && rest.ptr == &size && rest.len == 7);
        return;
    }
    const size_t used = (size_t)HEADER + data[1] + data[2];
    bool supported = false;
    FUZZ_EXPECT(rest.ptr == data + used && rest.len == size - used);
    FUZZ_EXPECT((mr != NULL) == (data[1] != 0) && (pcfg != NULL) == (data[2] != 0));
    if (pcfg) {
        FUZZ_EXPECT(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &supported) == 0);
        FUZZ_EXPECT(supported == (data[HEADER + data[1]] != 0));
    }
    FUZZ_EXPECT(rpma_mr_remote_delete(&mr) == 0 && rpma_peer_cfg_delete(&pcfg) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check(data, size < LONGEST ? size : LONGEST);
    return 0;
}
