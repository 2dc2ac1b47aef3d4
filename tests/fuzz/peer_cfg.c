// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer_cfg.c -- fuzzes rpma_peer_cfg_from_descriptor(): the bytes come from the other side

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct rpma_peer_cfg *const untouched = (struct rpma_peer_cfg *)&size, *pcfg = untouched;
    const int ret = rpma_peer_cfg_from_descriptor(data, size, &pcfg);
    FUZZ_EXPECT(ret == (size > 0 ? 0 : RPMA_E_INVAL));
    fuzz_count(size > 0);
    if (size == 0) {
        FUZZ_EXPECT(pcfg == untouched);
        return 0;
    }
    bool supported = false;
    uint8_t again = 0xff;
    FUZZ_EXPECT(rpma_peer_cfg_get_direct_write_to_pmem(pcfg, &supported) == 0);
    FUZZ_EXPECT(supported == (data[0] != 0));
    FUZZ_EXPECT(rpma_peer_cfg_get_descriptor(pcfg, &again) == 0 &&
                again == ((data[0] & ~6) == 0xa1 ? data[0] : supported)); // statements are kept
    FUZZ_EXPECT(rpma_peer_cfg_delete(&pcfg) == 0 && pcfg == NULL);
    return 0;
}
