// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// unsupported.cc -- the functions of libibverbs.so.1 for features that the fabric lacks

#include "unsupported.hh"

#include "shim.hh"

#include <cstdio>
#include <pthread.h>

using namespace sim;

extern "C" int rdma_sim_unsupported(const char *function, const char *feature) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *printed[64];
    pthread_mutex_lock(&lock);
    for (const char *&one : printed) {
        if (one && strcmp(one, feature) != 0)
            continue;
        if (!one)
            fprintf(stderr, "rdma-sim: %s: %s: %s not supported: see Limits in rdma-sim(1)\n",
                    program_invocation_short_name, function, feature);
        one = feature;
        break;
    }
    pthread_mutex_unlock(&lock);
    return EOPNOTSUPP;
}

namespace {

constexpr char FLOWS[] = "flow steering is", DEVICE_MEMORY[] = "device memory is",
               QUEUES[] = "separate work queues are",
               DOMAINS[] = "thread and parent domains are", XRC[] = "XRC is",
               OPEN_QP[] = "opening of queue pairs is", COUNTERS[] = "counters are",
               IMPORT[] = "sharing of objects is", DMABUF[] = "registration of a dma-buf is",
               RATES[] = "rate limits are", MODERATION[] = "moderation of completions is",
               TAGS[] = "tag matching is", NULL_MR[] = "the null region is";

// An operation of a context: a function of any signature that fails.
template <const char *NAME, const char *FEATURE> int refuse(...) {
    return rdma_sim_unsupported(NAME, FEATURE);
}
template <const char *NAME, const char *FEATURE> void *refuse_object(...) {
    errno = rdma_sim_unsupported(NAME, FEATURE);
    return nullptr;
}

} // namespace

// Only XRC and tag matching need it: ibv_create_srq_ex() of verbs.h uses ibv_create_srq().
ibv_srq *sim::refuse_srq_ex(ibv_context *, ibv_srq_init_attr_ex *attr) {
    const bool has_tags =
        attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_TM;
    return fail<ibv_srq>(rdma_sim_unsupported("ibv_create_srq_ex", has_tags ? TAGS : XRC));
}

// The caller's signature has the same calling convention as one without parameters.
#define FAILS(member, feature)                                   \
    {                                                            \
        static constexpr char name[] = "ibv_" #member;           \
        verbs.member = reinterpret_cast<decltype(verbs.member)>( \
            reinterpret_cast<void *>(refuse<name, feature>));    \
    }
#define NONE(member, feature)                                        \
    {                                                                \
        static constexpr char name[] = "ibv_" #member;               \
        verbs.member = reinterpret_cast<decltype(verbs.member)>(     \
            reinterpret_cast<void *>(refuse_object<name, feature>)); \
    }

// The operations that the fabric lacks.
void sim::set_unsupported(verbs_context &verbs) {
    // clang-format off
    NONE(alloc_dm, DEVICE_MEMORY) FAILS(free_dm, DEVICE_MEMORY) NONE(reg_dm_mr, DEVICE_MEMORY)
    NONE(create_flow_action_esp, FLOWS) FAILS(destroy_flow_action, FLOWS)
    FAILS(modify_flow_action_esp, FLOWS)
    NONE(create_counters, COUNTERS) FAILS(destroy_counters, COUNTERS)
    FAILS(attach_counters_point_flow, COUNTERS) FAILS(read_counters, COUNTERS)
    NONE(alloc_null_mr, NULL_MR)
    NONE(alloc_td, DOMAINS) FAILS(dealloc_td, DOMAINS) NONE(alloc_parent_domain, DOMAINS)
    FAILS(modify_qp_rate_limit, RATES) FAILS(post_srq_ops, TAGS)
    FAILS(destroy_rwq_ind_table, QUEUES) NONE(create_rwq_ind_table, QUEUES)
    NONE(create_wq, QUEUES) FAILS(modify_wq, QUEUES) FAILS(destroy_wq, QUEUES)
    NONE(open_qp, OPEN_QP) NONE(open_xrcd, XRC) FAILS(close_xrcd, XRC)
    FAILS(get_srq_num, XRC) FAILS(modify_cq, MODERATION)
        // clang-format on
        verbs.create_srq_ex = refuse_srq_ex;
    static constexpr char create_flow[] = "ibv_create_flow",
                          destroy_flow[] = "ibv_destroy_flow";
    verbs.ibv_create_flow = reinterpret_cast<decltype(verbs.ibv_create_flow)>(
        reinterpret_cast<void *>(refuse_object<create_flow, FLOWS>));
    verbs.ibv_destroy_flow = reinterpret_cast<decltype(verbs.ibv_destroy_flow)>(
        reinterpret_cast<void *>(refuse<destroy_flow, FLOWS>));
}

extern "C" {

#define FUNCTION_FAILS(name, feature, ...)           \
    int name(__VA_ARGS__) {                          \
        return rdma_sim_unsupported(#name, feature); \
    }
#define FUNCTION_NONE(name, type, feature, ...)                  \
    type *name(__VA_ARGS__) {                                    \
        return fail<type>(rdma_sim_unsupported(#name, feature)); \
    }
FUNCTION_NONE(ibv_import_device, ibv_context, IMPORT, int)
FUNCTION_NONE(ibv_import_pd, ibv_pd, IMPORT, ibv_context *, uint32_t)
FUNCTION_NONE(ibv_import_mr, ibv_mr, IMPORT, ibv_pd *, uint32_t)
FUNCTION_NONE(ibv_import_dm, ibv_dm, IMPORT, ibv_context *, uint32_t)
FUNCTION_NONE(ibv_reg_dmabuf_mr, ibv_mr, DMABUF, ibv_pd *, uint64_t, size_t, uint64_t, int, int)
void ibv_unimport_pd(ibv_pd *) {}
void ibv_unimport_mr(ibv_mr *) {}
void ibv_unimport_dm(ibv_dm *) {}
int ibv_set_ece(ibv_qp *, ibv_ece *ece) {
    return ece->vendor_id
               ? rdma_sim_unsupported("ibv_set_ece", "enhanced connections (ECE) are")
               : 0;
}
}
