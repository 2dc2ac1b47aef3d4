// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mr.cc -- memory regions and their descriptors

#include "core/mr.hh"

#include <cinttypes>

#include "core/descriptor.hh"

using namespace rpma;

rpma_mr_local::rpma_mr_local(Mr &&registered, int usage_flags)
    : addr(reinterpret_cast<uintptr_t>(registered->addr)), lkey(registered->lkey),
      usage(usage_flags), region(std::move(registered)) {}

void rpma_mr_local::describe(unsigned char *descriptor) const {
    descriptor = put_le(descriptor, addr, 8);
    descriptor = put_le(descriptor, region->length, 8);
    descriptor = put_le(descriptor, region->rkey, 4);
    *descriptor = static_cast<unsigned char>(usage);
}

namespace {

int code_of_advice(int error) {
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
        RPMA_FAIL(call, code_of_advice(error), error,
                  "ibv_advise_mr(advice=%d, flags=0x%" PRIx32 ", addr=0x%" PRIx64
                  ", length=%" PRIu32 ")",
                  advice, flags, range.addr, len);
}

std::unique_ptr<rpma_mr_remote>
rpma_mr_remote::from_descriptor(Call &call, const unsigned char *descriptor) {
    const uint64_t addr = get_le(descriptor, 8);
    const uint64_t size = get_le(descriptor, 8);
    const uint64_t rkey = get_le(descriptor, 4);
    const unsigned usage = *descriptor;
    if (usage == 0) {
        RPMA_REJECT(call, "the descriptor has no usage: addr=0x%" PRIx64 ", size=%" PRIu64,
                    addr, size);
        return nullptr;
    }
    if (addr + size < addr) { // no offset into a region wraps
        RPMA_REJECT(call,
                    "the region of the descriptor ends behind the last address: addr=0x%" PRIx64
                    ", size=%" PRIu64,
                    addr, size);
        return nullptr;
    }
    auto mr = make<rpma_mr_remote>(call);
    if (mr) {
        mr->addr = addr;
        mr->rkey = static_cast<uint32_t>(rkey);
        mr->flush_usage = usage << FLUSH_BY_READ | usage << FLUSH_NATIVELY;
        mr->size = size;
        RPMA_LOG(RPMA_LOG_LEVEL_DEBUG, call.function(),
                 "remote region: addr=0x%" PRIx64 ", size=%" PRIu64 ", rkey=0x%" PRIx32
                 ", usage=0x%" PRIx32,
                 mr->addr, mr->size, mr->rkey, mr->usage());
    }
    return mr;
}
