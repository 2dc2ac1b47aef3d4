// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// verbs.c -- objects of libibverbs: protection domains, regions, queues, channels.

#include "internal.h"

#include <errno.h>

#undef ibv_reg_mr

struct fake_pd {
    struct fake_object object;
    struct ibv_pd pd;
};

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
    const int before = errno;
    FAKE_CALL(context);
    if (call->failed) {
        errno = call->error ? call->error : before; // 0: the provider does not set errno
        return NULL;
    }
    struct fake_pd *made = FAKE_NEW(FAKE_PD, struct fake_pd, pd);
    made->pd.context = context;
    return &made->pd;
}

// Linux 7.3, drivers/infiniband/core/uverbs_std_types.c, uverbs_free_pd(): EBUSY while in use.
int ibv_dealloc_pd(struct ibv_pd *pd) {
    return fake_release(__func__, FAKE_PD, pd, false);
}

// Linux 7.3, mm/gup.c, check_vma_flags(): FS-DAX pages cannot be pinned for long. The kernel
// pins pages before the device checks whether they are persistent.
static int access_error(unsigned access, size_t length) {
    const struct fake_device *device = fake_device();
    const bool is_refused = device->dax && !(access & IBV_ACCESS_ON_DEMAND);
    const struct sim_profile profile = fake_profile_reported();
    const int error = sim_check_region(&profile, access, length, device->pmem || is_refused);
    return !error && is_refused ? EOPNOTSUPP : error;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                             unsigned access) {
    static unsigned key = 0xf0000000; // keys of devices may have any bit set
    FAKE_CALL_OF("ibv_reg_mr", pd);
    call->reg_mr.addr = addr;
    call->reg_mr.length = length;
    call->reg_mr.access = access;
    struct fake_object *parent = fake_find(FAKE_PD, pd);
    if (iova != (uintptr_t)addr)
        fake_misuse("the IOVA differs from the address");
    const int error = access_error(access, length);
    if (call->failed || !parent || error)
        return fake_return_null(call, error);
    struct fake_mr *made = FAKE_NEW(FAKE_MR, struct fake_mr, mr);
    fake_adopt(&made->object, parent);
    made->access = access;
    made->mr =
        (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length};
    made->mr.lkey = ++key;
    made->mr.rkey = ++key;
    return &made->mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access) {
    return reg_mr(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

// The macro ibv_reg_mr() calls this function if the access flags are not a constant.
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned int access) {
    return reg_mr(pd, addr, length, iova, access);
}

// rdma-core 56, libibverbs/verbs.c, ibv_dereg_mr(): returns the provider's result, and releases
// the region only if that is 0.
int ibv_dereg_mr(struct ibv_mr *mr) {
    return fake_release(__func__, FAKE_MR, mr, false);
}

static unsigned key_at(const void *addr, bool is_remote) {
    FAKE_LOCKED;
    struct fake_mr *mr = NULL;
    while ((mr = fake_next(FAKE_MR, mr)) && mr->mr.addr != addr)
        ;
    return !mr ? 0 : is_remote ? mr->mr.rkey : mr->mr.lkey;
}

uint32_t fake_lkey(const void *addr) {
    return key_at(addr, false);
}

uint32_t fake_rkey(const void *addr) {
    return key_at(addr, true);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init) {
    FAKE_CALL(pd);
    struct ibv_srq_attr *const attr = &init->attr;
    fake_touch(init, offsetof(struct ibv_srq_init_attr, attr) + sizeof(*attr));
    call->srq = *init;
    struct fake_object *parent = fake_find(FAKE_PD, pd);
    struct ibv_srq_attr actual = *attr;
    const int refusal = sim_check_srq(fake_profile(), &actual, attr);
    if (call->failed || !parent || refusal)
        return fake_return_null(call, parent ? refusal : EINVAL);
    struct fake_srq *made = FAKE_NEW(FAKE_SRQ, struct fake_srq, srq);
    fake_adopt(&made->object, parent);
    made->receives = (struct fake_receives){.max_wr = actual.max_wr, .max_sge = actual.max_sge};
    made->srq.context = pd->context;
    made->srq.pd = pd;
    return &made->srq;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask) {
    FAKE_CALL(srq);
    struct fake_srq *found = fake_find(FAKE_SRQ, srq);
    if (mask != IBV_SRQ_LIMIT)
        fake_misuse("changes more than the limit");
    if (call->failed || !found ||
        sim_check_srq_change(fake_profile(), attr, (unsigned)mask, &found->receives.max_wr,
                             found->receives.posted))
        return fake_error(call, EINVAL);
    found->limit = attr->srq_limit;
    return 0;
}

// Linux 7.3, drivers/infiniband/core/verbs.c, ib_destroy_srq_user(): EBUSY while in use.
int ibv_destroy_srq(struct ibv_srq *srq) {
    return fake_release(__func__, FAKE_SRQ, srq, false);
}

uint32_t fake_srq_limit(const struct ibv_srq *srq) {
    FAKE_LOCKED;
    const struct fake_srq *found = fake_find(FAKE_SRQ, srq);
    return found->limit;
}

struct ibv_srq *fake_srq(void) {
    FAKE_LOCKED;
    struct fake_srq *newest = fake_next(FAKE_SRQ, NULL);
    return newest ? &newest->srq : NULL;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
    FAKE_CALL(context);
    if (call->failed)
        return fake_return_null(call, EINVAL);
    return &fake_channel_new(FAKE_COMP_CHANNEL)->of_cqs;
}

// rdma-core 56, libibverbs/cmd.c, ibv_destroy_comp_channel(): EBUSY while it has CQs (refcnt).
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) {
    return fake_release(__func__, FAKE_COMP_CHANNEL, channel, true);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector) {
    FAKE_CALL(context);
    call->create_cq.cqe = cqe;
    call->create_cq.comp_vector = comp_vector;
    call->create_cq.channel = channel;
    call->create_cq.cq_context = cq_context;
    struct fake_channel *parent = fake_find(FAKE_COMP_CHANNEL, channel);
    const int refusal = sim_check_cq(fake_profile(), cqe, comp_vector);
    if (call->failed || !parent || refusal)
        return fake_return_null(call, parent ? refusal : EINVAL);
    struct fake_cq *made = FAKE_NEW(FAKE_CQ, struct fake_cq, cq);
    fake_adopt(&made->object, parent);
    made->channel = parent;
    made->cq.context = context;
    made->cq.channel = channel;
    made->cq.cq_context = cq_context;
    made->cq.cqe = (int)sim_queue_size(fake_profile(), (unsigned)cqe);
    return &made->cq;
}

// Linux 7.3, drivers/infiniband/core/verbs.c, ib_destroy_cq_user(): EBUSY while queue pairs
// use it. rdma-core 56, libibverbs/cmd_cq.c, ibv_cmd_destroy_cq(): then waits until all taken
// events are acknowledged, and drops the other events.
int ibv_destroy_cq(struct ibv_cq *cq) {
    return fake_release(__func__, FAKE_CQ, cq, true);
}
