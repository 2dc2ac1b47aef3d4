// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// qp.c -- queue pairs.

#include "internal.h"

#include <errno.h>

struct fake_qp *fake_qp_of(struct ibv_qp *qp) {
    return (struct fake_qp *)((char *)qp - offsetof(struct fake_qp, qp));
}

// The last step of rdma_create_qp_ex(); NULL and errno on a refusal.
struct ibv_qp *fake_qp_create(struct ibv_qp_init_attr_ex *attr, struct ibv_context *context) {
    static unsigned number = 0x400;
    const bool extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    void *const pd = fake_find(FAKE_PD, attr->pd);
    void *const send_cq = fake_find(FAKE_CQ, attr->send_cq);
    void *const recv_cq = fake_find(FAKE_CQ, attr->recv_cq);
    void *const srq = attr->srq ? fake_find(FAKE_SRQ, attr->srq) : NULL;
    errno = EINVAL;
    // Objects of another device have no handle in this context: Linux 7.3,
    // drivers/infiniband/core/uverbs_cmd.c, create_qp().
    if (!pd || !send_cq || !recv_cq || attr->pd->context != context ||
        attr->send_cq->context != context || attr->recv_cq->context != context ||
        (srq && attr->srq->context != context))
        return NULL;
    struct ibv_qp_cap cap = attr->cap, reported;
    if (sim_check_qp(fake_profile(), &cap, srq, &reported))
        return NULL;
    // rdma-core 56, providers/rxe/rxe.c, check_qp_init_attr(); libibverbs/verbs.c,
    // ibv_create_qp_ex() of a provider without extended queue pairs.
    errno = EOPNOTSUPP;
    const struct sim_profile profile = fake_profile_reported();
    const uint64_t send_ops = sim_send_ops(&profile, IBV_QPT_RC);
    if (extended && (send_ops == 0 || (attr->send_ops_flags & ~send_ops)))
        return NULL;
    struct fake_qp *qp = FAKE_NEW(FAKE_QP, struct fake_qp, qp);
    void *const parents[] = {pd, send_cq, recv_cq, srq};
    for (unsigned i = 0; i < FAKE_LENGTH(parents); i++)
        fake_adopt(&qp->object, parents[i]);
    qp->cap = cap;
    attr->cap = reported;
    qp->receives =
        (struct fake_receives){.max_wr = cap.max_recv_wr, .max_sge = cap.max_recv_sge};
    qp->qp.ex.qp_base = (struct ibv_qp){.context = context,
                                        .qp_context = attr->qp_context,
                                        .pd = attr->pd,
                                        .send_cq = attr->send_cq,
                                        .recv_cq = attr->recv_cq,
                                        .srq = attr->srq,
                                        .state = IBV_QPS_INIT, // ucma_init_conn_qp()
                                        .qp_num = ++number,
                                        .qp_type = attr->qp_type};
    qp->extended = extended;
    if (extended)
        fake_qp_set_builders(qp, attr->send_ops_flags);
    return &qp->qp.ex.qp_base;
}

// rdma-core 56: librdmacm moves the queue pair to RTS by ibv_modify_qp() (librdmacm/cma.c,
// ucma_modify_qp_rts()), which changes its member `state` (libibverbs/verbs.c). On iWARP the
// kernel moves it, and the attributes for RTS have no state: Linux 7.3,
// drivers/infiniband/core/iwcm.c, iwcm_init_qp_rts_attr().
void fake_qp_connect(struct ibv_qp *qp) {
    fake_qp_of(qp)->connected = true;
    if (fake_profile()->transport != SIM_IWARP)
        qp->state = IBV_QPS_RTS;
}

bool fake_can_send(const struct fake_qp *qp) {
    return qp->connected || qp->qp.ex.qp_base.state == IBV_QPS_ERR;
}

// Linux 7.3, drivers/infiniband/hw/irdma/verbs.c, irdma_modify_qp_roce(): the RNR timer
// changes only together with the state. iWARP has no RNR timer.
int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
    FAKE_CALL(qp);
    fake_copy(&call->modify_qp.attr, attr, sizeof(*attr));
    call->modify_qp.mask = mask;
    if (mask != (IBV_QP_STATE | IBV_QP_MIN_RNR_TIMER) || fake_profile()->transport == SIM_IWARP)
        fake_misuse("changes other than the RNR timer");
    if (!fake_find(FAKE_QP, qp))
        return EINVAL;
    return fake_error(call,
                      sim_check_qp_change(fake_profile(), IBV_QPT_RC, qp->state, attr, mask));
}

struct ibv_qp *fake_qp(uint32_t qp_num) {
    FAKE_LOCKED;
    struct fake_qp *qp = NULL;
    while ((qp = fake_next(FAKE_QP, qp)) && qp->qp.ex.qp_base.qp_num != qp_num)
        ;
    return qp ? &qp->qp.ex.qp_base : NULL;
}

// rdma-core 56, libibverbs/verbs.c, ibv_qp_to_qp_ex(): NULL unless the queue pair was created
// with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS. It reads comp_mask after the ibv_qp_ex, beyond the end
// of the queue pair of a provider without extended ones (providers/siw/siw.h, siw_qp).
struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp) {
    FAKE_LOCKED;
    if (!fake_profile()->has_qp_ex)
        fake_misuse("it reads beyond the end of a plain queue pair");
    struct fake_qp *found = fake_find(FAKE_QP, qp);
    return found && found->extended ? &found->qp.ex : NULL;
}
