// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm.c -- event channels and CM IDs of librdmacm.

#include "cm.h"

#include <errno.h>

struct fake_id *fake_find_id(struct rdma_cm_id *id, const char *call) {
    return fake_find(FAKE_ID, id, call);
}

// librdmacm reports with -1 and errno.
int fake_answer(struct fake_call *call) {
    if (!call->failed)
        return 0;
    errno = call->error;
    return -1;
}

static void close_all_channels(void) {
    for (struct fake_object *o = fake_first(); o; o = o->next)
        if (o->kind == FAKE_EVENT_CHANNEL)
            fake_queue_close(&((struct fake_event_channel *)o)->queue);
}

struct fake_event_channel *fake_open_event_channel(bool internal) {
    fake_cm_reset = close_all_channels;
    struct fake_event_channel *made = fake_create(FAKE_EVENT_CHANNEL, sizeof(*made),
                                                  offsetof(struct fake_event_channel, channel));
    if (fake_queue_open(&made->queue) != 0)
        fake_misuse("rdma_create_event_channel: no descriptor left");
    made->object.internal = internal;
    made->channel.fd = made->queue.fd;
    return made;
}

void fake_close_event_channel(struct fake_event_channel *channel) {
    fake_queue_close(&channel->queue);
    fake_destroy(&channel->object);
}

struct rdma_event_channel *rdma_create_event_channel(void) {
    FAKE_LOCKED;
    if (fake_answer(fake_enter("rdma_create_event_channel", NULL)) != 0)
        return NULL;
    return &fake_open_event_channel(false)->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel) {
    FAKE_LOCKED;
    fake_note("rdma_destroy_event_channel", channel);
    struct fake_event_channel *found =
        fake_find(FAKE_EVENT_CHANNEL, channel, "rdma_destroy_event_channel");
    if (!found)
        return;
    fake_busy(&found->object, "rdma_destroy_event_channel", true);
    fake_close_event_channel(found);
}

struct fake_id *fake_new_id(struct fake_event_channel *channel) {
    struct fake_id *made = fake_create(FAKE_ID, sizeof(*made), offsetof(struct fake_id, id));
    made->channel = channel;
    if (channel)
        fake_adopt(&channel->object);
    else
        made->own = fake_open_event_channel(true);
    made->id.channel = channel ? &channel->channel : &made->own->channel;
    return made;
}

// rdma-core 56, librdmacm/cma.c, ucma_alloc_id(): without a channel the ID gets its own, and
// its calls block until they are done.
int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_create_id", NULL);
    call->channel = channel;
    if (ps != RDMA_PS_TCP)
        fake_misuse("rdma_create_id: port space %d", ps);
    struct fake_event_channel *parent =
        channel ? fake_find(FAKE_EVENT_CHANNEL, channel, "rdma_create_id") : NULL;
    if (call->failed)
        return fake_answer(call);
    struct fake_id *made = fake_new_id(parent);
    made->id.context = context;
    made->id.ps = ps;
    *id = &made->id;
    return 0;
}

static bool belongs(void *what, void *with) {
    const struct fake_cm_event *event = what;
    return event->seen->event.id == &((struct fake_id *)with)->id;
}

void fake_move_events(struct fake_event_channel *from, struct fake_event_channel *to,
                      struct fake_id *id) {
    struct fake_cm_event *event;
    while ((event = fake_queue_remove(&from->queue, belongs, id)))
        if (to)
            fake_queue_push(&to->queue, event);
}

// rdma-core 56, librdmacm/cma.c, rdma_destroy_id(): waits until all events taken for the ID are
// acknowledged, and drops the events that were not taken. It does not destroy a queue pair. The
// kernel rejects an unanswered request (Linux 7.3, drivers/infiniband/core: cm.c,
// cm_destroy_id(), and iwcm.c, destroy_cm_id()); here that is a misuse, because librpma
// promises to reject it itself.
int rdma_destroy_id(struct rdma_cm_id *id) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_destroy_id", id);
    struct fake_id *found = fake_find_id(id, "rdma_destroy_id");
    if (!found)
        return fake_answer(&(struct fake_call){.failed = true, .error = EINVAL});
    if (found->unacked)
        fake_misuse("rdma_destroy_id: %u events are not acknowledged, it would block for ever",
                    found->unacked);
    if (id->qp)
        fake_misuse("rdma_destroy_id: its QP is still there");
    if (call->failed) {
        fake_refuse(&found->object, call->error,
                    found->channel ? &found->channel->object : NULL);
        return fake_answer(call);
    }
    if (found->incoming && !found->answered)
        fake_misuse("rdma_destroy_id: an incoming request was neither accepted nor rejected");
    fake_move_events(found->channel ? found->channel : found->own, NULL, found);
    if (found->channel)
        fake_release(&found->channel->object, &found->object);
    else
        fake_close_event_channel(found->own);
    fake_destroy(&found->object);
    return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel) {
    FAKE_LOCKED;
    struct fake_call *call = fake_enter("rdma_migrate_id", id);
    call->channel = channel;
    struct fake_id *found = fake_find_id(id, "rdma_migrate_id");
    struct fake_event_channel *to =
        channel ? fake_find(FAKE_EVENT_CHANNEL, channel, "rdma_migrate_id") : NULL;
    if (!found || call->failed)
        return fake_answer(call);
    // rdma-core 56, librdmacm/cma.c, rdma_migrate_id(): refuses to move a synchronous ID
    // without a new channel, and waits until all reported events are acknowledged.
    if (!found->channel && !to) {
        errno = EINVAL;
        return -1;
    }
    if (found->unacked)
        fake_misuse("rdma_migrate_id: %u events are not acknowledged, it would block for ever",
                    found->unacked);
    struct fake_event_channel *from = found->channel ? found->channel : found->own;
    if (!to)
        to = found->own = fake_open_event_channel(true);
    fake_move_events(from, to, found);
    if (found->channel)
        fake_release(&from->object, &found->object);
    else
        fake_close_event_channel(from);
    found->channel = channel ? to : NULL;
    found->id.channel = &to->channel;
    if (found->channel)
        fake_adopt(&to->object);
    return 0;
}
