// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// objects.hh -- owners of the objects of libibverbs, and the calls that create them
//
// A call that fails returns an empty owner, and logs the request.

#pragma once

#include <climits>
#include <infiniband/verbs.h>

#include "verbs/causes.hh"
#include "verbs/owner.hh"

namespace rpma {

// A size that a configuration requests, the limit of the device, the name of the setter, and
// how many such objects the device has for all programs (0: not known).
struct SizeRequest {
    uint32_t requested, limit;
    const char *setter;
    uint32_t objects = 0;
};

// Returns false on failure: RPMA_E_PROVIDER.
bool query_device(Call &call, ibv_context &device, ibv_device_attr_ex &attributes);

struct PdTraits {
    using Object = ibv_pd;
    static constexpr const char *NAME = "ibv_dealloc_pd";
    static int destroy(ibv_pd *pd) { return ibv_dealloc_pd(pd); }
};
using Pd = Owner<PdTraits>;

// RPMA_E_NOMEM, RPMA_E_PROVIDER, or RPMA_E_UNKNOWN if the provider gives no reason. objects:
// the device's limit of such objects for all programs.
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

struct CompChannelTraits {
    using Object = ibv_comp_channel;
    static constexpr const char *NAME = "ibv_destroy_comp_channel";
    static int destroy(ibv_comp_channel *channel) { return ibv_destroy_comp_channel(channel); }
};
using CompChannel = Owner<CompChannelTraits>;

[[gnu::cold]] void report_no_comp_channel(Call &call, int error);
// RPMA_E_PROVIDER.
inline CompChannel create_comp_channel(Call &call, ibv_context &device) {
    CompChannel channel(ibv_create_comp_channel(&device));
    if (!channel)
        report_no_comp_channel(call, errno);
    return channel;
}

// Reads an event, and sets queue to its CQ. Blocks unless the descriptor of the channel is
// O_NONBLOCK. False: errno holds the reason, see report_no_cq_event().
inline bool next_cq_event(ibv_comp_channel &channel, ibv_cq *&queue) {
    void *context;
    return ibv_get_cq_event(&channel, &queue, &context) == 0;
}
// Reports that there is no event. RPMA_E_NO_COMPLETION (channel empty, or interrupted by a
// signal), RPMA_E_PROVIDER.
[[gnu::cold]] int report_no_cq_event(const char *function, int error);
// Acknowledges and reports an event of an unexpected queue. RPMA_E_UNKNOWN.
[[gnu::cold]] int report_unexpected_cq_event(const char *function, ibv_cq &queue,
                                             const char *expected);

// Requests an event for the next completion, or for the next solicited or failed one. Returns
// an error number, see report_arm_failure().
inline int arm(ibv_cq &queue, bool solicited_only) {
    return ibv_req_notify_cq(&queue, solicited_only ? 1 : 0);
}
// RPMA_E_PROVIDER.
[[gnu::cold]] int report_arm_failure(const char *function, int error);
[[gnu::cold]] void report_arm_failure(Call &call, int error);

// error is ignored if the size does not fit the parameter of ibv_create_cq().
[[gnu::cold]] void report_no_cq(Call &call, int error, const SizeRequest &size,
                                uint32_t comp_vector);
// An armed CQ whose events are sent to channel. RPMA_E_PROVIDER.
inline Cq create_cq(Call &call, ibv_context &device, const SizeRequest &size,
                    uint32_t comp_vector, ibv_comp_channel *channel) {
    Cq queue(size.requested <= INT_MAX
                 ? ibv_create_cq(&device, static_cast<int>(size.requested), nullptr, channel,
                                 static_cast<int>(comp_vector))
                 : nullptr);
    if (!queue) {
        report_no_cq(call, errno, size, comp_vector);
    } else if (const int error = arm(*queue.get(), false); error != 0) {
        report_arm_failure(call, error);
        return {};
    }
    return queue;
}

// The code for an error number of a call that some devices do not support.
inline int code_of_optional_call(int error) {
    return error == EOPNOTSUPP || error == ENOSYS ? RPMA_E_NOSUPP : RPMA_E_PROVIDER;
}

struct SrqTraits {
    using Object = ibv_srq;
    static constexpr const char *NAME = "ibv_destroy_srq";
    static int destroy(ibv_srq *srq) { return ibv_destroy_srq(srq); }
};
using Srq = Owner<SrqTraits>;

// size.requested: in, the requested size; out, the actual size. RPMA_E_PROVIDER.
Srq create_srq(Call &call, ibv_pd &pd, SizeRequest &size, uint32_t max_sge);

// The most SGEs of an operation or a receive on any device: rpma_post() holds their array on
// its stack.
inline constexpr uint32_t MAX_SGE = 128;

[[gnu::cold]] void report_max_sge(Call &call, const char *attribute, SizeRequest sges);
// Returns false (RPMA_E_INVAL) if more SGEs per work request are requested than the device
// supports, or than librpma does. attribute is the name of the device's limit.
inline bool check_max_sge(Call &call, const char *attribute, SizeRequest sges) {
    const bool is_supported = sges.requested <= sges.limit && sges.requested <= MAX_SGE;
    if (!is_supported)
        report_max_sge(call, attribute, sges);
    return is_supported;
}

} // namespace rpma
