// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// work_request.cc -- checks scatter/gather lists

#include "post/work_request.hh"

namespace rpma {

namespace {

void refuse_number(const CallSite &site, uint32_t nsge, const SgeLimit &limit) {
    if (limit.max < limit.requested)
        refuse(site, __FILE_NAME__, __LINE__,
               "nsge is %" PRIu32 "; possible: %" PRIu32 " at most for a read on this device",
               nsge, limit.max);
    else
        refuse(site, __FILE_NAME__, __LINE__,
               "nsge is %" PRIu32 "; possible: %" PRIu32 " at most; raise it with %s()", nsge,
               limit.max, limit.setter);
}

} // namespace

int build_sges(const CallSite &site, SgeList list, const SgeLimit &limit, ibv_sge *sges) {
    const auto [sgl, nsge] = list;
    if (nsge > limit.max) {
        refuse_number(site, nsge, limit);
        return -1;
    }
    uint64_t room = UINT32_MAX; // for further bytes
    ibv_sge *next = sges;
    for (const rpma_sge *sge = sgl; sge != sgl + nsge; sge++) {
        if (sge->mr != nullptr && sge->len - 1 < room) [[likely]] {
            *next++ = make_sge(*sge->mr, sge->offset, sge->len);
            room -= sge->len;
            continue;
        }
        if (sge->mr == nullptr && (sge->offset | sge->len) != 0) {
            refuse(site, __FILE_NAME__, __LINE__, "sgl[%td]: " RPMA_NO_MEMORY, sge - sgl, "mr",
                   sge->offset, sge->len);
            return -1;
        }
        if (sge->len != 0) {
            refuse(site, __FILE_NAME__, __LINE__,
                   "sgl[%td] has len %zu, the elements before it have %" PRIu64
                   "; possible: 4294967295 (UINT32_MAX) in all",
                   sge - sgl, sge->len, UINT32_MAX - room);
            return -1;
        }
    }
    return static_cast<int>(next - sges);
}

} // namespace rpma
