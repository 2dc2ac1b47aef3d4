// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// verbs.c -- protection domains, regions, shared receive queues and QPs of libibverbs.

#include "internal.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_reg_mr

enum { FLUSH_GLOBAL = 1 << 8, FLUSH_PERSISTENT = 1 << 9 }; // access bits of rdma-core >= 45

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
    FAKE_LOCKED;
    const int before = errno;
    struct fake_call *call = fake_enter("ibv_alloc_pd", context);
    if (call->failed) {
        errno = call->error ? call->error : before; // 0: the provider leaves errno alone
        return NULL;
    }
    struct {
        struct fake_object object;
        struct ibv_pd pd;
    } *made = fake_create(FAKE_PD, sizeof(*made), sizeof(struct fake_object));
    made->pd.context = context;
    return &made->pd;
}

// Linux 7.3, drivers/infiniband/core/uverbs_std_types.c, uverbs_free_pd(): EBUSY while in use.
int ibv_dealloc_pd(struct ibv_pd *pd) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_dealloc_pd", pd);
    struct fake_object *object = fake_find(FAKE_PD, pd, "ibv_dealloc_pd");
    if (!object)
        return EINVAL;
    if (call->failed)
        return fake_refuse(object, call->error, NULL);
    const int busy = fake_busy(object, "ibv_dealloc_pd", false);
    if (!busy)
        fake_destroy(object);
    return busy;
}

// Why the device would refuse this registration; 0 if it would not.
static int access_error(unsigned access) {
    const struct fake_device *device = fake_device();
    // Linux 7.3, include/rdma/ib_verbs.h, ib_check_mr_access()
    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
        !(access & IBV_ACCESS_LOCAL_WRITE))
        return EINVAL;
    if ((access & IBV_ACCESS_ON_DEMAND) && !device->odp)
        return EOPNOTSUPP;
    if (((access & FLUSH_GLOBAL) && !(fake_flush_caps() & FAKE_CAP_FLUSH_GLOBAL)) ||
        ((access & FLUSH_PERSISTENT) && !(fake_flush_caps() & FAKE_CAP_FLUSH_PERSISTENT)))
        return EOPNOTSUPP;
    // Linux 7.3, mm/gup.c, check_vma_flags(): FS-DAX pages cannot be pinned for long.
    if (device->dax && !(access & IBV_ACCESS_ON_DEMAND))
        return EOPNOTSUPP;
    // Linux 7.3, drivers/infiniband/sw/rxe/rxe_mr.c, rxe_mr_fill_pages_from_sgt(): every page
    // has to be persistent memory; on-demand paging does not check it.
    if ((access & FLUSH_PERSISTENT) && !(access & IBV_ACCESS_ON_DEMAND) && !device->pmem)
        return EINVAL;
    return 0;
}

static struct ibv_mr *reg_mr(struct ibv_pd *pd, void *addr, size_t length, unsigned access) {
    static uint32_t key = 100;
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_reg_mr", pd);
    call->reg_mr.addr = addr;
    call->reg_mr.length = length;
    call->reg_mr.access = access;
    struct fake_object *parent = fake_find(FAKE_PD, pd, "ibv_reg_mr");
    if (!parent)
        return NULL;
    const int error = access_error(access);
    if (call->failed || error) {
        errno = call->failed ? call->error : error;
        return NULL;
    }
    struct fake_mr *made = fake_create(FAKE_MR, sizeof(*made), offsetof(struct fake_mr, mr));
    made->pd = parent;
    made->mr =
        (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length};
    made->access = access;
    made->mr.lkey = ++key;
    made->mr.rkey = ++key;
    fake_adopt(parent);
    return &made->mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access) {
    return reg_mr(pd, addr, length, (unsigned)access);
}

// What the macro ibv_reg_mr() calls when the compiler does not know the access flags.
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned int access) {
    if (iova != (uintptr_t)addr)
        fake_misuse("ibv_reg_mr_iova2: the address is not kept");
    return reg_mr(pd, addr, length, access);
}

// rdma-core 56, libibverbs/verbs.c, ibv_dereg_mr(): returns the provider's result, and releases
// the region only if that is 0.
int ibv_dereg_mr(struct ibv_mr *mr) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_dereg_mr", mr);
    struct fake_mr *found = fake_find(FAKE_MR, mr, "ibv_dereg_mr");
    if (!found)
        return EINVAL;
    if (call->failed)
        return fake_refuse(&found->object, call->error, found->pd);
    fake_release(found->pd, &found->object);
    fake_destroy(&found->object);
    return 0;
}

static const struct ibv_mr *region_at(const void *addr) {
    FAKE_LOCKED;
    for (struct fake_object *o = fake_first(); o; o = o->next)
        if (o->kind == FAKE_MR && !o->dead && ((struct fake_mr *)o)->mr.addr == addr)
            return &((struct fake_mr *)o)->mr;
    return NULL;
}

uint32_t fake_lkey(const void *addr) {
    const struct ibv_mr *mr = region_at(addr);
    return mr ? mr->lkey : 0;
}

uint32_t fake_rkey(const void *addr) {
    const struct ibv_mr *mr = region_at(addr);
    return mr ? mr->rkey : 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_create_srq", pd);
    fake_touch(&attr->attr, sizeof(attr->attr));
    fake_touch(&attr->srq_context, sizeof(attr->srq_context));
    call->srq = *attr;
    struct fake_object *parent = fake_find(FAKE_PD, pd, "ibv_create_srq");
    // Linux 7.3, drivers/infiniband/sw/rxe/rxe_srq.c, rxe_srq_chk_init()
    const bool wrong = attr->attr.max_wr == 0 || attr->attr.max_wr > fake_device()->max_wr ||
                       attr->attr.max_sge > (uint32_t)fake_device()->max_srq_sge;
    if (call->failed || !parent || wrong) {
        errno = call->failed ? call->error : EINVAL;
        return NULL;
    }
    // rxe_srq_from_init(): the actual size of the queue
    attr->attr.max_wr = fake_slots(attr->attr.max_wr);
    struct fake_srq *made =
        fake_create(FAKE_SRQ, sizeof(*made), offsetof(struct fake_srq, srq));
    made->pd = parent;
    made->max_sge = attr->attr.max_sge;
    made->max_receives = attr->attr.max_wr;
    made->srq.context = pd->context;
    made->srq.pd = pd;
    fake_adopt(parent);
    return &made->srq;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_srq.c, rxe_srq_chk_attr(): a limit above the actual
// size of the queue is refused.
int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_modify_srq", srq);
    fake_touch(attr, sizeof(*attr));
    struct fake_srq *found = fake_find(FAKE_SRQ, srq, "ibv_modify_srq");
    if (mask != IBV_SRQ_LIMIT)
        fake_misuse("ibv_modify_srq: changes more than the limit");
    if (call->failed || !found || attr->srq_limit > found->max_receives)
        return call->failed ? call->error : EINVAL;
    found->limit = attr->srq_limit;
    return 0;
}

uint32_t fake_srq_limit(const struct ibv_srq *srq) {
    FAKE_LOCKED;
    const struct fake_srq *found = fake_find(FAKE_SRQ, srq, "fake_srq_limit");
    return found ? found->limit : 0;
}

struct ibv_srq *fake_srq(void) {
    FAKE_LOCKED;
    for (struct fake_object *o = fake_first(); o; o = o->next)
        if (o->kind == FAKE_SRQ && !o->dead)
            return &((struct fake_srq *)o)->srq;
    return NULL;
}

// Linux 7.3, drivers/infiniband/core/verbs.c, ib_destroy_srq_user(): EBUSY while in use.
int ibv_destroy_srq(struct ibv_srq *srq) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_destroy_srq", srq);
    struct fake_srq *found = fake_find(FAKE_SRQ, srq, "ibv_destroy_srq");
    if (!found)
        return EINVAL;
    const int busy = fake_busy(&found->object, "ibv_destroy_srq", false);
    if (call->failed)
        return fake_refuse(&found->object, call->error, found->pd);
    if (busy)
        return busy;
    fake_async_forget(&found->object, "ibv_destroy_srq");
    fake_release(found->pd, &found->object);
    fake_destroy(&found->object);
    return 0;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_qp.c, rxe_qp_chk_cap(): what the device refuses with
// EINVAL.
static bool beyond_device(const struct ibv_qp_cap *cap, bool has_srq) {
    const uint32_t max_wr = fake_device()->max_wr, max_sge = (uint32_t)fake_device()->max_sge;
    return cap->max_send_wr > max_wr || cap->max_send_sge > max_sge ||
           cap->max_inline_data > FAKE_MAX_INLINE ||
           (!has_srq && (cap->max_recv_wr > max_wr || cap->max_recv_sge > max_sge));
}

// The last step of rdma_create_qp_ex(); NULL and errno on a refusal.
struct ibv_qp *fake_qp_create(struct ibv_qp_init_attr_ex *attr, struct ibv_context *context) {
    static uint32_t number = 0x400;
    const bool extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    struct fake_object *pd = fake_find(FAKE_PD, attr->pd, "rdma_create_qp_ex");
    struct fake_cq *send = fake_find(FAKE_CQ, attr->send_cq, "rdma_create_qp_ex");
    struct fake_cq *recv = fake_find(FAKE_CQ, attr->recv_cq, "rdma_create_qp_ex");
    struct fake_object *srq =
        attr->srq ? fake_find(FAKE_SRQ, attr->srq, "rdma_create_qp_ex") : NULL;
    errno = EINVAL;
    // Objects of another device have no handle in this context: Linux 7.3,
    // drivers/infiniband/core/uverbs_cmd.c, create_qp().
    if (!pd || !send || !recv || attr->pd->context != context ||
        attr->send_cq->context != context || attr->recv_cq->context != context ||
        (srq && attr->srq->context != context) || beyond_device(&attr->cap, attr->srq))
        return NULL;
    // rdma-core 56, providers/rxe/rxe.c, check_qp_init_attr(); libibverbs/verbs.c,
    // ibv_create_qp_ex() of a provider without extended queue pairs.
    if (extended && (fake_device()->plain_qp || attr->send_ops_flags & IBV_QP_EX_WITH_TSO)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    struct fake_qp *qp = fake_create(FAKE_QP, sizeof(*qp), offsetof(struct fake_qp, qp));
    struct ibv_qp *base = &qp->qp.ex.qp_base;
    // rxe_qp_init_req() and rxe_qp_init_resp(): the actual sizes of the queues. An element has
    // 16 bytes, which hold inline data as well.
    attr->cap.max_send_wr = fake_slots(attr->cap.max_send_wr);
    if (!attr->srq)
        attr->cap.max_recv_wr = fake_slots(attr->cap.max_recv_wr);
    if (attr->cap.max_inline_data < attr->cap.max_send_sge * sizeof(struct ibv_sge))
        attr->cap.max_inline_data = attr->cap.max_send_sge * sizeof(struct ibv_sge);
    qp->max_receives = attr->cap.max_recv_wr;
    qp->cap = attr->cap;
    *base = (struct ibv_qp){.context = context,
                            .qp_context = attr->qp_context,
                            .pd = attr->pd,
                            .send_cq = attr->send_cq,
                            .recv_cq = attr->recv_cq,
                            .srq = attr->srq,
                            .qp_num = ++number,
                            .qp_type = attr->qp_type};
    qp->state = IBV_QPS_INIT; // rdma-core 56, librdmacm/cma.c, ucma_init_conn_qp()
    qp->extended = extended;
    qp->pd = pd;
    qp->srq = srq;
    qp->send_cq = send;
    qp->recv_cq = recv;
    fake_adopt(pd);
    fake_adopt(&send->object);
    fake_adopt(&recv->object);
    if (srq)
        fake_adopt(srq);
    if (extended)
        fake_qp_set_native(qp, attr->send_ops_flags);
    return base;
}

// rdma-core 56, libibverbs/cmd.c, ibv_cmd_query_qp(): returns an error number, and writes the
// sizes to both structures.
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init) {
    FAKE_LOCKED;
    const struct fake_qp *found = fake_find(FAKE_QP, qp, "ibv_query_qp");
    fake_note("ibv_query_qp", qp);
    if (!(mask & IBV_QP_STATE))
        fake_misuse("ibv_query_qp: does not ask for the state");
    if (!found || fake_device()->no_query)
        return EINVAL;
    attr->cap = init->cap = found->cap;
    attr->qp_state = found->state;
    return 0;
}

// rdma-core 56, librdmacm/cma.c, rdma_destroy_qp(): ignores the result of ibv_destroy_qp().
int fake_qp_destroy(struct ibv_qp *qp, const char *call) {
    struct fake_qp *found = fake_find(FAKE_QP, qp, call);
    if (!found)
        return EINVAL;
    fake_async_forget(&found->object, call);
    fake_release(found->pd, &found->object);
    fake_release(&found->send_cq->object, &found->object);
    fake_release(&found->recv_cq->object, &found->object);
    if (found->srq)
        fake_release(found->srq, &found->object);
    free(found->pending);
    found->pending = NULL;
    fake_destroy(&found->object);
    return 0;
}

struct ibv_qp *fake_qp(uint32_t qp_num) {
    FAKE_LOCKED;
    for (struct fake_object *o = fake_first(); o; o = o->next) {
        struct fake_qp *qp = (struct fake_qp *)o;
        if (o->kind == FAKE_QP && !o->dead && qp->qp.ex.qp_base.qp_num == qp_num)
            return &qp->qp.ex.qp_base;
    }
    return NULL;
}

// rdma-core 56, libibverbs/verbs.c, ibv_qp_to_qp_ex(): NULL unless the queue pair was created
// with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS. It reads a mark behind the ibv_qp_ex, beyond the end of
// the queue pair of a provider without extended ones (providers/siw/siw.h, siw_qp).
struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp) {
    FAKE_LOCKED;
    if (fake_device()->plain_qp)
        fake_misuse("ibv_qp_to_qp_ex: it reads behind the end of a plain queue pair");
    struct fake_qp *found = fake_find(FAKE_QP, qp, "ibv_qp_to_qp_ex");
    return found && found->extended ? &found->qp.ex : NULL;
}
