// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// objects.hh -- owners of the objects of libibverbs

#pragma once

#include <infiniband/verbs.h>

#include "verbs/owner.hh"

namespace rpma::verbs {

inline Result<ibv_device_attr_ex> query_device(ibv_context &device) {
    ibv_device_attr_ex attributes = {};
    Status status =
        check("ibv_query_device_ex()", ibv_query_device_ex(&device, nullptr, &attributes));
    if (!status)
        return fail(status.error());
    return attributes;
}

struct PdTraits {
    using Object = ibv_pd;
    static Status destroy(ibv_pd *pd) { return check("ibv_dealloc_pd()", ibv_dealloc_pd(pd)); }
};
using Pd = Owner<PdTraits>;

// RPMA_E_NOMEM, RPMA_E_PROVIDER, or RPMA_E_UNKNOWN when the provider gives no reason.
inline Result<Pd> alloc_pd(ibv_context &device) {
    const int before = errno;
    errno = 0;
    ibv_pd *pd = ibv_alloc_pd(&device);
    const int error = errno;
    if (pd != nullptr || error == 0)
        errno = before;
    if (pd != nullptr)
        return Pd(pd);
    if (error == 0)
        return fail({RPMA_E_UNKNOWN, "ibv_alloc_pd()", 0, "the provider gives no reason"});
    return fail({error == ENOMEM ? RPMA_E_NOMEM : RPMA_E_PROVIDER, "ibv_alloc_pd()", error});
}

struct MrTraits {
    using Object = ibv_mr;
    static Status destroy(ibv_mr *mr) { return check("ibv_dereg_mr()", ibv_dereg_mr(mr)); }
};
using Mr = Owner<MrTraits>;

inline Result<Mr> register_memory(ibv_pd &pd, void *ptr, std::size_t size, unsigned access) {
    ibv_mr *mr = ibv_reg_mr(&pd, ptr, size, access);
    if (mr == nullptr)
        return failed("ibv_reg_mr()");
    return Mr(mr);
}

struct CqTraits {
    using Object = ibv_cq;
    static Status destroy(ibv_cq *cq) { return check("ibv_destroy_cq()", ibv_destroy_cq(cq)); }
};
using Cq = Owner<CqTraits>;

struct CompChannelTraits {
    using Object = ibv_comp_channel;
    static Status destroy(ibv_comp_channel *channel) {
        return check("ibv_destroy_comp_channel()", ibv_destroy_comp_channel(channel));
    }
};
using CompChannel = Owner<CompChannelTraits>;

inline Result<CompChannel> create_comp_channel(ibv_context &device) {
    ibv_comp_channel *channel = ibv_create_comp_channel(&device);
    if (channel == nullptr)
        return failed("ibv_create_comp_channel()");
    return CompChannel(channel);
}

struct SrqTraits {
    using Object = ibv_srq;
    static Status destroy(ibv_srq *srq) {
        return check("ibv_destroy_srq()", ibv_destroy_srq(srq));
    }
};
using Srq = Owner<SrqTraits>;

} // namespace rpma::verbs
