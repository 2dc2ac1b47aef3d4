// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// data.c -- the data path, which the inline functions of verbs.h reach through tables.

#include "internal.h"

#include <errno.h>
#include <string.h>

static int poll_override;
static bool poll_overridden;

void fake_poll_returns(int number) {
    FAKE_LOCKED;
    poll_override = number;
    poll_overridden = true;
}

// The local side of a request must lie in a live region of the same device.
static void check_sge(const char *call, const struct ibv_sge *sge) {
    for (struct fake_object *o = fake_first(); o; o = o->next)
        if (o->kind == FAKE_MR && !o->dead && ((struct fake_mr *)o)->mr.lkey == sge->lkey)
            return;
    fake_misuse("%s: lkey %u belongs to no live region", call, sge->lkey);
}

// Reads what providers read, whatever the opcode is: libibverbs/cmd.c, ibv_cmd_post_send(), and
// providers/rxe/rxe.c, convert_send_wr(), copy imm_data of each request; init_send_wqe() copies
// wr.rdma.remote_addr of each one that is no atomic operation (rdma-core 56).
static void copy_send(struct fake_post *to, const struct ibv_send_wr *wr) {
    fake_touch(&wr->wr_id, sizeof(wr->wr_id));
    fake_touch(&wr->next, sizeof(wr->next));
    to->wr_id = wr->wr_id;
    to->opcode = (int)wr->opcode;
    to->flags = wr->send_flags;
    to->num_sge = wr->num_sge;
    if (wr->num_sge > 0) {
        to->sge = wr->sg_list[0];
        fake_touch(&to->sge, sizeof(to->sge));
    }
    fake_touch(&wr->imm_data, sizeof(wr->imm_data));
    fake_touch(&wr->wr.rdma.remote_addr, sizeof(wr->wr.rdma.remote_addr));
    if (wr->opcode == IBV_WR_SEND_WITH_IMM || wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        to->imm = wr->imm_data;
    if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM) {
        to->remote_addr = wr->wr.rdma.remote_addr;
        to->rkey = wr->wr.rdma.rkey;
    }
    if ((wr->send_flags & IBV_SEND_INLINE) && wr->num_sge > 0)
        memcpy(to->inlined, (const void *)(uintptr_t)to->sge.addr,
               to->sge.length < 8 ? to->sge.length : 8);
    fake_touch(to, sizeof(*to));
}

int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    if (fake_is_quiet())
        return 0;
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_post_send", qp);
    copy_send(&call->send, wr);
    if (!fake_find(FAKE_QP, qp, "ibv_post_send"))
        return EINVAL;
    if (wr->next)
        fake_misuse("ibv_post_send: more than one request");
    if (wr->num_sge > 0 && !(wr->send_flags & IBV_SEND_INLINE))
        check_sge("ibv_post_send", &wr->sg_list[0]);
    if (call->failed)
        *bad = wr;
    return call->failed ? call->error : 0;
}

static int post_recv(struct fake_call *call, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    fake_touch(&wr->wr_id, sizeof(wr->wr_id));
    fake_touch(&wr->next, sizeof(wr->next));
    call->recv.wr_id = wr->wr_id;
    call->recv.num_sge = wr->num_sge;
    if (wr->next)
        fake_misuse("%s: more than one request", call->name);
    if (wr->num_sge > 0) {
        call->recv.sge = wr->sg_list[0];
        fake_touch(&call->recv.sge, sizeof(call->recv.sge));
        check_sge(call->name, &wr->sg_list[0]);
    }
    if (call->failed)
        *bad = wr;
    return call->failed ? call->error : 0;
}

int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    if (fake_is_quiet())
        return 0;
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_post_recv", qp);
    if (!fake_find(FAKE_QP, qp, "ibv_post_recv"))
        return EINVAL;
    // rdma-core 56, providers/rxe/rxe.c, rxe_post_recv() names no request when there is no
    // queue, and rxe_post_one_recv() answers ENOMEM when it is full.
    if (qp->srq) {
        *bad = NULL;
        return EINVAL;
    }
    struct fake_qp *found = (struct fake_qp *)((char *)qp - offsetof(struct fake_qp, qp));
    if (!call->failed && found->receives == found->max_receives) {
        *bad = wr;
        return ENOMEM;
    }
    found->receives += !call->failed;
    return post_recv(call, wr, bad);
}

int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    if (fake_is_quiet())
        return 0;
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_post_srq_recv", srq);
    if (!fake_find(FAKE_SRQ, srq, "ibv_post_srq_recv"))
        return EINVAL;
    return post_recv(call, wr, bad);
}

static int take_completions(struct fake_cq *cq, int number, struct ibv_wc *wc) {
    const unsigned room = sizeof(cq->wc) / sizeof(cq->wc[0]);
    int taken = 0;
    for (; taken < number && cq->wc_count > 0; taken++, cq->wc_count--) {
        wc[taken] = cq->wc[cq->wc_first];
        cq->wc_first = (cq->wc_first + 1) % room;
    }
    return taken;
}

int fake_poll_cq(struct ibv_cq *cq, int number, struct ibv_wc *wc) {
    if (fake_is_quiet()) // each CQ belongs to one thread in those tests
        return take_completions((struct fake_cq *)((char *)cq - offsetof(struct fake_cq, cq)),
                                number, wc);
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_poll_cq", cq);
    call->number = (unsigned)number;
    struct fake_cq *found = fake_find(FAKE_CQ, cq, "ibv_poll_cq");
    if (call->failed || !found)
        return -2; // CQ_POLL_ERR of rdma-core 44, providers/mlx5/cq.c and mlx4/cq.c: no reason
    if (poll_overridden) {
        poll_overridden = false;
        return poll_override;
    }
    return take_completions(found, number, wc);
}

int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_req_notify_cq", cq);
    struct fake_cq *found = fake_find(FAKE_CQ, cq, "ibv_req_notify_cq");
    if (call->failed || !found)
        return call->failed ? call->error : EINVAL;
    if (solicited_only)
        fake_misuse("ibv_req_notify_cq: solicited only");
    found->armed = true;
    return 0;
}

// ---- native operations ---------------------------------------------------------------------

static struct fake_qp *building(struct ibv_qp_ex *ex, const char *call) {
    struct fake_qp *qp = (struct fake_qp *)((char *)ex - offsetof(struct fake_qp, qp));
    if (!qp->building)
        fake_misuse("%s: outside of ibv_wr_start()", call);
    return qp;
}

static void wr_start(struct ibv_qp_ex *ex) {
    if (fake_is_quiet())
        return;
    struct fake_qp *qp = (struct fake_qp *)((char *)ex - offsetof(struct fake_qp, qp));
    fake_lock(); // as a provider: held until ibv_wr_complete()
    fake_note("ibv_wr_start", &ex->qp_base);
    qp->building = true;
    memset(&qp->pending, 0, sizeof(qp->pending));
}

static struct fake_post *build(struct ibv_qp_ex *ex, const char *call, int opcode) {
    struct fake_qp *qp = building(ex, call);
    fake_note(call, &ex->qp_base);
    qp->pending.opcode = opcode;
    qp->pending.wr_id = ex->wr_id;
    qp->pending.flags = ex->wr_flags;
    return &qp->pending;
}

static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr,
                            const void *bytes) {
    if (fake_is_quiet())
        return;
    struct fake_post *post = build(ex, "ibv_wr_atomic_write", FAKE_WR_ATOMIC_WRITE);
    post->rkey = rkey;
    post->remote_addr = remote_addr;
    memcpy(post->inlined, bytes, sizeof(post->inlined));
}

static void wr_flush(struct ibv_qp_ex *ex, uint32_t rkey, uint64_t remote_addr, size_t len,
                     uint8_t type, uint8_t level) {
    if (fake_is_quiet())
        return;
    struct fake_post *post = build(ex, "ibv_wr_flush", FAKE_WR_FLUSH);
    post->rkey = rkey;
    post->remote_addr = remote_addr;
    post->flush_len = len;
    post->flush_type = type;
    post->flush_level = level;
}

static int wr_complete(struct ibv_qp_ex *ex) {
    if (fake_is_quiet())
        return 0;
    struct fake_qp *qp = building(ex, "ibv_wr_complete");
    struct fake_call *call = fake_enter("ibv_wr_complete", &ex->qp_base);
    call->send = qp->pending;
    fake_touch(&call->send, sizeof(call->send));
    qp->building = false;
    const int ret = call->failed ? call->error : 0;
    fake_unlock(NULL);
    return ret;
}

static void wr_abort(struct ibv_qp_ex *ex) {
    struct fake_qp *qp = building(ex, "ibv_wr_abort");
    fake_note("ibv_wr_abort", &ex->qp_base);
    qp->building = false;
    fake_unlock(NULL);
}

void fake_qp_set_native(struct fake_qp *qp, uint64_t send_ops_flags) {
    struct ibv_qp_ex *ex = &qp->qp.ex;
    ex->wr_start = wr_start;
    ex->wr_complete = wr_complete;
    ex->wr_abort = wr_abort;
    if (send_ops_flags & (1 << 12))
        ex->wr_atomic_write = wr_atomic_write;
#ifdef FAKE_HEADERS_KNOW_FLUSH
    if (send_ops_flags & (1 << 11))
        ex->wr_flush = wr_flush;
#else
    if (send_ops_flags & (1 << 11))
        qp->qp.wr_flush = wr_flush;
#endif
}
