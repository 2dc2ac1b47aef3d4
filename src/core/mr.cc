// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mr.cc -- memory regions and their descriptors

#include "core/mr.hh"

#include <cinttypes>

#include "core/flush.hh"

using namespace rpma;

rpma_mr_local::rpma_mr_local(Mr &&registered, int usage_flags, uint8_t native_flush,
                             uint8_t served_by_device)
    : addr(reinterpret_cast<uintptr_t>(registered->addr)), lkey(registered->lkey),
      usage(static_cast<uint16_t>(usage_flags)), native_flush_usage(native_flush),
      served(served_by_device), region(std::move(registered)) {}

Region rpma_mr_local::describe() const {
    return {addr, region->length, region->rkey, usage};
}

namespace {

int code_of_advise_error(int error) {
    switch (error) {
    case EOPNOTSUPP:
#if ENOTSUP != EOPNOTSUPP
    case ENOTSUP:
#endif
        return RPMA_E_NOSUPP;
    case EFAULT:
    case EINVAL:
        return RPMA_E_INVAL;
    default:
        return RPMA_E_PROVIDER;
    }
}

} // namespace

void rpma_mr_local::advise(Call &call, std::size_t offset, uint32_t len, int advice,
                           uint32_t flags) const {
    ibv_sge range = {addr + offset, len, lkey};
    const int error =
        ibv_advise_mr(region->pd, static_cast<ibv_advise_mr_advice>(advice), flags, &range, 1);
    if (error != 0)
        RPMA_FAIL(call, code_of_advise_error(error), error,
                  "ibv_advise_mr(advice=%d, flags=0x%" PRIx32 ", addr=0x%" PRIx64
                  ", length=%" PRIu32 ")",
                  advice, flags, range.addr, len);
}

rpma_mr_remote::rpma_mr_remote(const Region &region, uint8_t native_flush_usage)
    : addr(region.addr), rkey(region.rkey),
      flush(flush_mask(region.usage & native_flush_usage), flush_mask(region.usage)),
      size(region.size),
      full_read_limit(size < FLUSH_READ_SIZE ? 0 : size - FLUSH_READ_SIZE + 1),
      usage(region.usage) {}

std::unique_ptr<rpma_mr_remote> rpma_mr_remote::create(Call &call, const Region &region,
                                                       uint8_t native_flush_usage) {
    if ((region.usage & ~RPMA_MR_USAGE_ATOMIC) == 0) {
        RPMA_REJECT(call, "the descriptor has no usage: addr=0x%" PRIx64 ", size=%" PRIu64,
                    region.addr, region.size);
        return nullptr;
    }
    if (region.addr + region.size < region.addr) { // no offset into a region overflows
        RPMA_REJECT(call,
                    "the region of the descriptor ends beyond the last address: addr=0x%" PRIx64
                    ", size=%" PRIu64,
                    region.addr, region.size);
        return nullptr;
    }
    RPMA_LOG(RPMA_LOG_LEVEL_DEBUG, call.function(),
             "remote region: addr=0x%" PRIx64 ", size=%" PRIu64 ", rkey=0x%" PRIx32
             ", usage=0x%x",
             region.addr, region.size, region.rkey, region.usage);
    return make<rpma_mr_remote>(call, region, native_flush_usage);
}
