// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mr_remote.c -- fuzzes rpma_mr_remote_from_descriptor(): the bytes come from the other side

#include "fuzz.h"

enum {
    SIZE = 21,
    USAGE_AT = 20,
    FLUSH_TYPES = RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct rpma_mr_remote *const untouched = (struct rpma_mr_remote *)&size, *mr = untouched;
    const bool good = size >= SIZE && fuzz_is_region(data);
    const int ret = rpma_mr_remote_from_descriptor(data, size, &mr);
    FUZZ_EXPECT(ret == (good ? 0 : RPMA_E_INVAL));
    fuzz_count(good);
    if (!good) {
        FUZZ_EXPECT(mr == untouched);
        return 0;
    }
    size_t length = 0;
    int flush_type = -1;
    FUZZ_EXPECT(rpma_mr_remote_get_size(mr, &length) == 0 && length == fuzz_number(data + 8));
    FUZZ_EXPECT(rpma_mr_remote_get_flush_type(mr, &flush_type) == 0);
    FUZZ_EXPECT(flush_type == (data[USAGE_AT] & FLUSH_TYPES));
    FUZZ_EXPECT(rpma_mr_remote_delete(&mr) == 0 && mr == NULL);
    return 0;
}
