// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq.c -- completions and their events.

#include "internal.h"

#include <errno.h>
#include <string.h>

static int poll_override;
static bool poll_overridden;

static struct fake_cq *inside(const struct ibv_cq *cq) {
    return (struct fake_cq *)((const char *)cq - offsetof(struct fake_cq, cq));
}

void fake_poll_returns(int number) {
    FAKE_LOCKED;
    poll_override = number;
    poll_overridden = true;
}

static int take_completions(struct fake_cq *cq, int number, struct ibv_wc *wc) {
    const int taken = number < cq->wc_count ? number : cq->wc_count;
    cq->wc_count -= taken;
    memcpy(wc, cq->wc, (unsigned)taken * sizeof(*wc));
    memmove(cq->wc, cq->wc + taken, (unsigned)cq->wc_count * sizeof(*wc));
    return taken;
}

int fake_poll_cq(struct ibv_cq *cq, int number, struct ibv_wc *wc) {
    FAKE_HIDDEN;
    FAKE_CALL_OF("ibv_poll_cq", cq);
    call->number = (unsigned)number;
    if (!fake_find(FAKE_CQ, cq) || call->failed)
        return -2; // CQ_POLL_ERR of rdma-core 44, providers/mlx5/cq.c and mlx4/cq.c: no errno
    if (poll_overridden) {
        poll_overridden = false;
        return poll_override;
    }
    return take_completions(inside(cq), number, wc);
}

int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only) {
    FAKE_CALL_OF("ibv_req_notify_cq", cq);
    if (!fake_find(FAKE_CQ, cq) || call->failed)
        return fake_error(call, EINVAL);
    sim_arm(&inside(cq)->armed, solicited_only);
    return 0;
}

// rdma-core 56, libibverbs/verbs.c, __ibv_get_cq_event_1_1(): read() of one event, -1 when
// there is none; Linux 7.3, drivers/infiniband/core/uverbs_main.c, ib_uverbs_event_read().
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context) {
    struct fake_cq *fired = fake_queue_take(__func__, channel, FAKE_COMP_CHANNEL, NULL);
    if (!fired)
        return -1;
    FAKE_RELEASED = NULL;
    fired->unacked++;
    *cq = &fired->cq;
    *cq_context = fired->cq.cq_context;
    return 0;
}

// rdma-core 56, libibverbs/verbs.c, ibv_ack_cq_events(): counts the events and wakes
// ibv_destroy_cq().
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents) {
    FAKE_LOCKED;
    fake_note(__func__, cq)->number = nevents;
    struct fake_cq *found = fake_find(FAKE_CQ, cq);
    if (!found)
        return;
    if (nevents > found->unacked)
        fake_misuse("%u of %u", nevents, found->unacked);
    found->unacked -= nevents;
}

// ---- functions for tests -------------------------------------------------------------------

struct ibv_cq *fake_cq_on(int fd, unsigned nth) {
    FAKE_LOCKED;
    struct fake_channel *channel = fake_channel_on(FAKE_COMP_CHANNEL, fd);
    unsigned count = 0;
    for (struct fake_cq *cq = NULL; (cq = fake_next(FAKE_CQ, cq));)
        count += cq->channel == channel;
    for (struct fake_cq *cq = NULL; (cq = fake_next(FAKE_CQ, cq));) // newest first
        if (cq->channel == channel && --count == nth)
            return &cq->cq;
    return NULL;
}

void fake_notify(struct ibv_cq *cq) {
    FAKE_LOCKED;
    fake_queue_push(&inside(cq)->channel->queue, inside(cq));
}

// Linux 7.3, drivers/infiniband/sw/rxe: rxe_comp.c, rxe_completer(), COMPST_ERROR: a completion
// with an error moves the queue pair to the error state.
static void complete(struct ibv_cq *cq, const struct ibv_wc *wc, bool solicited) {
    struct ibv_qp *qp = wc->status != IBV_WC_SUCCESS ? fake_qp(wc->qp_num) : NULL;
    FAKE_LOCKED_FOR("fake_complete");
    struct fake_cq *found = inside(cq);
    if (qp)
        qp->state = IBV_QPS_ERR;
    if (found->wc_count == FAKE_LENGTH(found->wc) || found->wc_count == cq->cqe)
        fake_misuse("the test overflows the CQ");
    else
        found->wc[found->wc_count++] = *wc;
    if (sim_notifies(fake_profile(), &found->armed, wc->status, solicited))
        fake_queue_push(&found->channel->queue, found);
}

void fake_complete(struct ibv_cq *cq, const struct ibv_wc *wc) {
    complete(cq, wc, false);
}

void fake_complete_solicited(struct ibv_cq *cq, const struct ibv_wc *wc) {
    complete(cq, wc, true);
}

bool fake_armed(const struct ibv_cq *cq) {
    return inside(cq)->armed == SIM_ARMED;
}

unsigned fake_unacked(const struct ibv_cq *cq) {
    return inside(cq)->unacked;
}

struct ibv_cq *fake_foreign_event(int fd) {
    FAKE_LOCKED;
    struct fake_channel *channel = fake_channel_on(FAKE_COMP_CHANNEL, fd);
    struct fake_cq *made = FAKE_NEW(FAKE_CQ, struct fake_cq, cq);
    made->object.internal = true;
    made->channel = channel;
    fake_queue_push(&channel->queue, made);
    return &made->cq;
}
