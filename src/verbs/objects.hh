// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// objects.hh -- owners of the objects of libibverbs, and the calls that make them
//
// A call that fails returns an empty owner, and logs what was asked for.

#pragma once

#include <infiniband/verbs.h>

#include "verbs/causes.hh"
#include "verbs/owner.hh"

namespace rpma {

// Returns false on failure: RPMA_E_PROVIDER.
bool query_device(Call &call, ibv_context &device, ibv_device_attr_ex &attributes);

struct PdTraits {
    using Object = ibv_pd;
    static constexpr const char *NAME = "ibv_dealloc_pd";
    static int destroy(ibv_pd *pd) { return ibv_dealloc_pd(pd); }
};
using Pd = Owner<PdTraits>;

// RPMA_E_NOMEM, RPMA_E_PROVIDER, or RPMA_E_UNKNOWN when the provider gives no reason.
// The device has that many objects of the kind for all programs.
Pd alloc_pd(Call &call, ibv_context &device, uint32_t objects);

struct MrTraits {
    using Object = ibv_mr;
    static constexpr const char *NAME = "ibv_dereg_mr";
    static int destroy(ibv_mr *mr) { return ibv_dereg_mr(mr); }
};
using Mr = Owner<MrTraits>;

struct CqTraits {
    using Object = ibv_cq;
    static constexpr const char *NAME = "ibv_destroy_cq";
    static int destroy(ibv_cq *cq) { return ibv_destroy_cq(cq); }
};
using Cq = Owner<CqTraits>;

// A CQ whose events go to channel, armed. RPMA_E_PROVIDER.
Cq create_cq(Call &call, ibv_context &device, const Demand &size, uint32_t comp_vector,
             ibv_comp_channel *channel);

struct CompChannelTraits {
    using Object = ibv_comp_channel;
    static constexpr const char *NAME = "ibv_destroy_comp_channel";
    static int destroy(ibv_comp_channel *channel) { return ibv_destroy_comp_channel(channel); }
};
using CompChannel = Owner<CompChannelTraits>;

// RPMA_E_PROVIDER.
CompChannel create_comp_channel(Call &call, ibv_context &device);

// Blocks unless the descriptor of the channel is O_NONBLOCK; queue becomes the one that has an
// event. False: errno says why, see no_cq_event().
inline bool next_cq_event(ibv_comp_channel &channel, ibv_cq *&queue) {
    void *context;
    return ibv_get_cq_event(&channel, &queue, &context) == 0;
}
// Reports that there is no event. RPMA_E_NO_COMPLETION (nothing to read, or a signal
// came), RPMA_E_PROVIDER.
[[gnu::cold]] int no_cq_event(const char *function, int error);
// Acknowledges an event of a queue that is not expected, and reports it. RPMA_E_UNKNOWN.
[[gnu::cold]] int foreign_cq_event(const char *function, ibv_cq &queue, const char *expected);

// Has the queue give an event for the next completion, or for the next that is solicited or
// failed. An error number, see not_armed().
inline int arm(ibv_cq &queue, bool solicited_only) {
    return ibv_req_notify_cq(&queue, solicited_only);
}
// RPMA_E_PROVIDER.
[[gnu::cold]] int not_armed(const char *function, int error);

// The code for an error number of a call that not every device has.
inline int unless_unsupported(int error) {
    return error == EOPNOTSUPP || error == ENOSYS ? RPMA_E_NOSUPP : RPMA_E_PROVIDER;
}

struct SrqTraits {
    using Object = ibv_srq;
    static constexpr const char *NAME = "ibv_destroy_srq";
    static int destroy(ibv_srq *srq) { return ibv_destroy_srq(srq); }
};
using Srq = Owner<SrqTraits>;

// size.wanted: in, what is wanted; out, what the device gave. RPMA_E_PROVIDER.
Srq create_srq(Call &call, ibv_pd &pd, Demand &size, uint32_t max_sge);

// Fails with RPMA_E_INVAL (false) if more elements per work request are wanted than the device
// has, or than most. limit is the name of the device's attribute.
bool check_max_sge(Call &call, const char *limit, const Demand &pieces, uint32_t most);

} // namespace rpma
