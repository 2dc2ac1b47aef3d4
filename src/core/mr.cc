// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// mr.cc -- memory regions and their descriptors

#include "core/mr.hh"

#include "core/descriptor.hh"

rpma_mr_local::rpma_mr_local(rpma::verbs::Mr &&registered, int usage_flags)
    : addr(reinterpret_cast<uintptr_t>(registered->addr)), lkey(registered->lkey),
      usage(usage_flags), region(std::move(registered)) {}

void rpma_mr_local::describe(unsigned char *descriptor) const {
    descriptor = rpma::put_le(descriptor, addr, 8);
    descriptor = rpma::put_le(descriptor, region->length, 8);
    descriptor = rpma::put_le(descriptor, region->rkey, 4);
    *descriptor = static_cast<unsigned char>(usage);
}

rpma::Status rpma_mr_local::advise(std::size_t offset, uint32_t len, int advice,
                                   uint32_t flags) const {
    ibv_sge range = {addr + offset, len, lkey};
    int error =
        ibv_advise_mr(region->pd, static_cast<ibv_advise_mr_advice>(advice), flags, &range, 1);
    switch (error) {
    case EOPNOTSUPP:
#if ENOTSUP != EOPNOTSUPP
    case ENOTSUP:
#endif
        return rpma::fail({RPMA_E_NOSUPP, "ibv_advise_mr()", error});
    case EFAULT:
    case EINVAL:
        return rpma::fail({RPMA_E_INVAL, "ibv_advise_mr()", error});
    default:
        return rpma::verbs::check("ibv_advise_mr()", error);
    }
}

rpma::Result<std::unique_ptr<rpma_mr_remote>>
rpma_mr_remote::from_descriptor(const unsigned char *descriptor) {
    uint64_t addr = rpma::get_le(descriptor, 8);
    uint64_t size = rpma::get_le(descriptor, 8);
    uint64_t rkey = rpma::get_le(descriptor, 4);
    if (*descriptor == 0)
        return rpma::fail({RPMA_E_INVAL, "the descriptor has no usage"});

    auto mr = rpma::make<rpma_mr_remote>();
    if (mr) {
        (*mr)->addr = addr;
        (*mr)->rkey = static_cast<uint32_t>(rkey);
        (*mr)->usage = *descriptor;
        (*mr)->size = size;
    }
    return mr;
}
