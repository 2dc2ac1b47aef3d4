// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cq.c -- completion channels, completion queues and their events.

#include "internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_create_comp_channel", context);
    if (call->failed) {
        errno = call->error;
        return NULL;
    }
    struct fake_comp_channel *made = fake_create(FAKE_COMP_CHANNEL, sizeof(*made),
                                                 offsetof(struct fake_comp_channel, channel));
    if (fake_queue_open(&made->queue) != 0)
        fake_misuse("ibv_create_comp_channel: no descriptor left");
    made->channel.context = context;
    made->channel.fd = made->queue.fd;
    return &made->channel;
}

// rdma-core 56, libibverbs/cmd.c, ibv_destroy_comp_channel(): EBUSY while it has CQs (refcnt).
int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_destroy_comp_channel", channel);
    struct fake_comp_channel *found =
        fake_find(FAKE_COMP_CHANNEL, channel, "ibv_destroy_comp_channel");
    if (!found)
        return EINVAL;
    const int busy = fake_busy(&found->object, "ibv_destroy_comp_channel", true);
    if (call->failed || busy) // a CQ whose destruction failed keeps its channel
        return fake_refuse(&found->object, call->failed ? call->error : busy, NULL);
    fake_queue_close(&found->queue);
    fake_destroy(&found->object);
    return 0;
}

// Linux 7.3, drivers/infiniband/sw/rxe/rxe_queue.c, rxe_queue_init(): the next power of two,
// less the slot that tells full from empty.
uint32_t fake_slots(uint32_t wanted) {
    uint64_t slots = 1;
    while (slots < (uint64_t)wanted + 1)
        slots *= 2;
    return (uint32_t)(slots - 1);
}

// Linux 7.3: drivers/infiniband/core/uverbs_std_types_cq.c, UVERBS_METHOD_CQ_CREATE, refuses a
// size of 0 and an unknown vector; drivers/infiniband/sw/rxe/rxe_verbs.c, rxe_create_cq(),
// refuses more than max_cqe; all with EINVAL.
struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_create_cq", context);
    call->create_cq.cqe = cqe;
    call->create_cq.comp_vector = comp_vector;
    call->create_cq.channel = channel;
    call->create_cq.cq_context = cq_context;
    struct fake_comp_channel *parent = fake_find(FAKE_COMP_CHANNEL, channel, "ibv_create_cq");
    const bool wrong = cqe < 1 || cqe > fake_device()->max_cqe || comp_vector < 0 ||
                       comp_vector >= fake_device()->vectors;
    if (call->failed || !parent || wrong) {
        errno = call->failed ? call->error : EINVAL;
        return NULL;
    }
    struct fake_cq *made = fake_create(FAKE_CQ, sizeof(*made), offsetof(struct fake_cq, cq));
    made->channel = parent;
    made->cq.context = context;
    made->cq.channel = channel;
    made->cq.cq_context = cq_context;
    made->cq.cqe = (int)fake_slots((uint32_t)cqe);
    fake_adopt(&parent->object);
    return &made->cq;
}

static bool same(void *what, void *with) {
    return what == with;
}

// Linux 7.3, drivers/infiniband/core/verbs.c, ib_destroy_cq_user(): EBUSY while queue pairs use
// it. rdma-core 56, libibverbs/cmd_cq.c, ibv_cmd_destroy_cq(): then waits until all events that
// were taken are acknowledged, and drops those that were not taken.
int ibv_destroy_cq(struct ibv_cq *cq) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("ibv_destroy_cq", cq);
    struct fake_cq *found = fake_find(FAKE_CQ, cq, "ibv_destroy_cq");
    if (!found)
        return EINVAL;
    if (found->unacked)
        fake_misuse("ibv_destroy_cq: %u events are not acknowledged, it would block for ever",
                    found->unacked);
    const int busy = fake_busy(&found->object, "ibv_destroy_cq", true);
    if (call->failed || busy)
        return fake_refuse(&found->object, call->failed ? call->error : busy,
                           &found->channel->object);
    fake_async_forget(&found->object, "ibv_destroy_cq");
    while (fake_queue_remove(&found->channel->queue, same, found))
        ;
    fake_release(&found->channel->object, &found->object);
    fake_destroy(&found->object);
    return 0;
}

// rdma-core 56, libibverbs/verbs.c, __ibv_get_cq_event_1_1(): read() of one event, -1 when
// there is none; Linux 7.3, drivers/infiniband/core/uverbs_main.c, ib_uverbs_event_read().
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context) {
    fake_lock();
    struct fake_call call = *fake_enter("ibv_get_cq_event", channel);
    struct fake_comp_channel *found = fake_find(FAKE_COMP_CHANNEL, channel, "ibv_get_cq_event");
    fake_unlock(NULL);
    if (call.failed || !found) {
        errno = call.failed ? call.error : EINVAL;
        return -1;
    }
    struct fake_cq *fired = fake_queue_take(&found->queue);
    if (!fired)
        return -1;
    FAKE_RELEASED = 0;
    fired->unacked++;
    *cq = &fired->cq;
    *cq_context = fired->cq.cq_context;
    return 0;
}

// rdma-core 56, libibverbs/verbs.c, ibv_ack_cq_events(): counts the events and wakes
// ibv_destroy_cq().
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents) {
    FAKE_LOCKED;
    fake_note("ibv_ack_cq_events", cq)->number = nevents;
    struct fake_cq *found = fake_find(FAKE_CQ, cq, "ibv_ack_cq_events");
    if (!found)
        return;
    if (nevents > found->unacked)
        fake_misuse("ibv_ack_cq_events: %u of %u", nevents, found->unacked);
    found->unacked -= nevents > found->unacked ? found->unacked : nevents;
}

// ---- functions for tests -------------------------------------------------------------------

static struct fake_comp_channel *channel_on(int fd) {
    for (struct fake_object *o = fake_first(); o; o = o->next)
        if (o->kind == FAKE_COMP_CHANNEL && !o->dead &&
            ((struct fake_comp_channel *)o)->queue.fd == fd)
            return (struct fake_comp_channel *)o;
    return NULL;
}

struct ibv_comp_channel *fake_comp_channel_on(int fd) {
    FAKE_LOCKED;
    struct fake_comp_channel *found = channel_on(fd);
    return found ? &found->channel : NULL;
}

struct ibv_cq *fake_cq_on(int fd, unsigned nth) {
    FAKE_LOCKED;
    struct fake_comp_channel *channel = channel_on(fd);
    struct fake_cq *on_it[16];
    unsigned count = 0;
    for (struct fake_object *o = fake_first(); o && count < 16; o = o->next)
        if (o->kind == FAKE_CQ && !o->dead && ((struct fake_cq *)o)->channel == channel)
            on_it[count++] = (struct fake_cq *)o;
    return nth < count ? &on_it[count - 1 - nth]->cq : NULL; // newest first in the list
}

static struct fake_cq *inside(const struct ibv_cq *cq) {
    return (struct fake_cq *)((const char *)cq - offsetof(struct fake_cq, cq));
}

void fake_notify(struct ibv_cq *cq) {
    FAKE_LOCKED;
    fake_queue_push(&inside(cq)->channel->queue, inside(cq));
}

// Linux 7.3, drivers/infiniband/sw/rxe: rxe_comp.c, rxe_completer(), COMPST_ERROR: a completion
// with an error moves the queue pair to the error state; rxe_cq.c, rxe_cq_post(): which
// completion gives an event.
static void complete(struct ibv_cq *cq, const struct ibv_wc *wc, bool solicited) {
    struct ibv_qp *qp = wc->status != IBV_WC_SUCCESS ? fake_qp(wc->qp_num) : NULL;
    FAKE_LOCKED;
    struct fake_cq *found = inside(cq);
    struct fake_qp *failed = qp ? fake_find(FAKE_QP, qp, "fake_complete") : NULL;
    if (failed)
        failed->state = IBV_QPS_ERR;
    const unsigned room = sizeof(found->wc) / sizeof(found->wc[0]);
    if (found->wc_count == room || found->wc_count == (unsigned)cq->cqe)
        fake_misuse("fake_complete: the test overflows the CQ");
    else
        found->wc[(found->wc_first + found->wc_count++) % room] = *wc;
    if (!found->armed && !(found->armed_solicited && solicited))
        return;
    fake_queue_push(&found->channel->queue, found);
    found->armed = found->armed_solicited = false;
}

void fake_complete(struct ibv_cq *cq, const struct ibv_wc *wc) {
    complete(cq, wc, false);
}

void fake_complete_solicited(struct ibv_cq *cq, const struct ibv_wc *wc) {
    complete(cq, wc, true);
}

bool fake_armed(const struct ibv_cq *cq) {
    return inside(cq)->armed;
}

unsigned fake_unacked(const struct ibv_cq *cq) {
    return inside(cq)->unacked;
}

struct ibv_cq *fake_foreign_event(int fd) {
    FAKE_LOCKED;
    struct fake_comp_channel *channel = channel_on(fd);
    struct fake_cq *made = fake_create(FAKE_CQ, sizeof(*made), offsetof(struct fake_cq, cq));
    made->object.internal = true;
    made->channel = channel;
    made->cq.channel = &channel->channel;
    made->cq.context = channel->channel.context;
    fake_queue_push(&channel->queue, made);
    return &made->cq;
}
