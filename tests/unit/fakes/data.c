// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// data.c -- receives and completions, which the inline functions of verbs.h reach through
// tables.

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

static const struct fake_mr *region_of(uint32_t lkey) {
    for (struct fake_object *o = fake_first(); o; o = o->next)
        if (o->kind == FAKE_MR && ((struct fake_mr *)o)->mr.lkey == lkey)
            return (struct fake_mr *)o;
    return NULL;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_mr.c: copy_data() looks up the region of an element
// by lookup_mr(), which compares key, domain and access, and its range by mr_check_range(). The
// completion says what is wrong; no post does.
static void check_element(const char *call, const struct ibv_pd *pd, bool is_written,
                          const struct ibv_sge *sge) {
    const struct fake_mr *region = region_of(sge->lkey);
    const uint64_t start = region ? (uintptr_t)region->mr.addr : 0;
    if (!region)
        fake_misuse("%s: lkey %u belongs to no live region", call, sge->lkey);
    else if (region->mr.pd != pd && !fake_device_state.any_range)
        fake_misuse("%s: the region of lkey %u is of another domain", call, sge->lkey);
    else if (is_written && !(region->access & IBV_ACCESS_LOCAL_WRITE))
        fake_misuse("%s: the region of lkey %u must not be written", call, sge->lkey);
    else if (!fake_device_state.any_range && sge->length > 0 &&
             (sge->length > region->mr.length ||
              sge->addr - start > region->mr.length - sge->length))
        fake_misuse("%s: an element is not within the region of lkey %u", call, sge->lkey);
}

void fake_copy_elements(struct fake_elements *to, const char *call, const struct ibv_pd *pd,
                        bool is_written, const struct ibv_sge *sges, int num_sge) {
    to->num_sge = num_sge;
    for (int i = 0; i < num_sge && i < FAKE_MAX_SGE; i++) {
        to->sges[i] = sges[i];
        fake_touch(&to->sges[i], sizeof(to->sges[i]));
        check_element(call, pd, is_written, &sges[i]);
    }
}

// A queue that takes receives.
struct receives {
    uint32_t *posted, max, max_sge;
    const struct ibv_pd *pd;
};

static void copy_receive(struct fake_receive *to, const char *call, const struct ibv_pd *pd,
                         const struct ibv_recv_wr *wr) {
    memset(to, 0, sizeof(*to));
    fake_touch(&wr->wr_id, sizeof(wr->wr_id));
    fake_touch(&wr->next, sizeof(wr->next));
    to->wr_id = wr->wr_id;
    fake_copy_elements(&to->elements, call, pd, true, wr->sg_list, wr->num_sge);
}

// rdma-core 56, providers/rxe/rxe.c, rxe_post_recv() and rxe_post_srq_recv(): requests are
// taken up to the first that is refused, and bad is that one. rxe_post_one_recv() answers
// ENOMEM when the queue is full, and EINVAL for more elements than it was made for.
static int post_recv(struct fake_call *call, struct receives queue, struct ibv_recv_wr *wr,
                     struct ibv_recv_wr **bad) {
    const struct ibv_recv_wr *first = wr;
    for (; wr; wr = wr->next) {
        struct fake_receive receive;
        int error = 0;
        copy_receive(&receive, call->name, queue.pd, wr);
        if (wr == first) {
            call->recv = receive;
            error = call->failed ? call->error : 0;
        } else if (!fake_fault_asked("receive request", &error)) {
            error = 0;
        }
        if (!error && *queue.posted == queue.max)
            error = ENOMEM;
        if (!error && (uint32_t)wr->num_sge > queue.max_sge)
            error = EINVAL;
        if (error) {
            *bad = wr;
            return error;
        }
        *queue.posted += !fake_is_quiet(); // of no use where nothing is recorded
        fake_take_receive(&receive);
    }
    return 0;
}

int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    FAKE_DATA_LOCKED;
    struct fake_call *call = fake_enter("ibv_post_recv", qp);
    if (!fake_find(FAKE_QP, qp, "ibv_post_recv"))
        return EINVAL;
    *bad = NULL;
    // rxe_post_recv() names no request when there is no queue.
    if (qp->srq)
        return EINVAL;
    struct fake_qp *found = (struct fake_qp *)((char *)qp - offsetof(struct fake_qp, qp));
    const struct receives queue = {&found->receives, found->max_receives,
                                   found->cap.max_recv_sge, qp->pd};
    return post_recv(call, queue, wr, bad);
}

int fake_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    FAKE_DATA_LOCKED;
    struct fake_call *call = fake_enter("ibv_post_srq_recv", srq);
    struct fake_srq *found = fake_find(FAKE_SRQ, srq, "ibv_post_srq_recv");
    if (!found)
        return EINVAL;
    const struct receives queue = {&found->receives, found->max_receives, found->max_sge,
                                   srq->pd};
    return post_recv(call, queue, wr, bad);
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
        return -2; // CQ_POLL_ERR of rdma-core 44, providers/mlx5/cq.c and mlx4/cq.c: no errno
    if (poll_overridden) {
        poll_overridden = false;
        return poll_override;
    }
    return take_completions(found, number, wc);
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_req_notify_cq(): a queue that is armed
// for any completion stays so.
int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_req_notify_cq", cq);
    struct fake_cq *found = fake_find(FAKE_CQ, cq, "ibv_req_notify_cq");
    if (call->failed || !found)
        return call->failed ? call->error : EINVAL;
    if (solicited_only)
        found->armed_solicited = true;
    else
        found->armed = true;
    return 0;
}
