// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// cm.c -- event channels and CM IDs of librdmacm.

#include "internal.h"

#include <errno.h>

struct rdma_event_channel *rdma_create_event_channel(void) {
    FAKE_CALL(NULL);
    return call->failed ? fake_nothing(call, 0) : &fake_channel_new(FAKE_EVENT_CHANNEL)->of_ids;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel) {
    FAKE_LOCKED;
    fake_note(__func__, channel);
    struct fake_channel *found = fake_find(FAKE_EVENT_CHANNEL, channel);
    if (!found)
        return;
    fake_has_users(&found->object);
    fake_destroy(found);
}

// Puts the ID on that channel, or on one of its own.
static void stand_on(struct fake_id *id, struct fake_channel *channel) {
    id->channel = channel;
    id->own = channel ? NULL : fake_channel_new(FAKE_EVENT_CHANNEL);
    fake_adopt(&id->object, channel);
    if (id->own)
        id->own->object.internal = true;
    id->id.channel = &(channel ? channel : id->own)->of_ids;
}

static bool belongs(void *what, void *with) {
    const struct fake_cm_event *event = what;
    return event->seen->event.id == &((struct fake_id *)with)->id;
}

static struct fake_channel *home_of(const struct fake_id *id) {
    return id->channel ? id->channel : id->own;
}

// Takes the ID from a channel; its events go to another one (if any).
static void leave(struct fake_id *id, struct fake_channel *from, struct fake_channel *to) {
    struct fake_cm_event *event;
    while ((event = fake_queue_remove(&from->queue, belongs, id)))
        if (to)
            fake_queue_push(&to->queue, event);
    if (from->object.internal)
        fake_destroy(from);
    else
        fake_abandon(&id->object, from);
}

struct fake_id *fake_id_new(struct fake_channel *channel) {
    struct fake_id *made = FAKE_NEW(FAKE_ID, struct fake_id, id);
    made->id.ps = RDMA_PS_TCP;
    stand_on(made, channel);
    return made;
}

// rdma-core 56, librdmacm/cma.c, ucma_alloc_id(): without a channel the ID gets its own, and
// its calls block until they are done.
int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps) {
    FAKE_CALL(NULL);
    call->channel = channel;
    if (ps != RDMA_PS_TCP)
        fake_misuse("port space %d", ps);
    struct fake_channel *parent = channel ? fake_find(FAKE_EVENT_CHANNEL, channel) : NULL;
    if (call->failed)
        return fake_answer(call, 0);
    struct fake_id *made = fake_id_new(parent);
    made->id.context = context;
    *id = &made->id;
    return 0;
}

// rdma-core 56, librdmacm/cma.c, rdma_destroy_id() and rdma_migrate_id(): wait until all
// reported events are acknowledged.
static void wait_for_acknowledgements(const struct fake_id *id) {
    if (id->unacked)
        fake_misuse("%u events are not acknowledged, it would block for ever", id->unacked);
}

// rdma-core 56, librdmacm/cma.c, rdma_destroy_id(): drops the events that were not taken, and
// does not destroy a queue pair. The kernel rejects an unanswered request (Linux 7.3,
// drivers/infiniband/core: cm.c, cm_destroy_id(), and iwcm.c, destroy_cm_id()); here that is a
// misuse, because librpma promises to reject it itself.
int rdma_destroy_id(struct rdma_cm_id *id) {
    FAKE_ID_CALL(id);
    if (!found)
        return fake_refused(EINVAL);
    wait_for_acknowledgements(found);
    if (id->qp)
        fake_misuse("its QP is still there");
    if (call->failed)
        return fake_refused(fake_refuse(&found->object, call->error));
    if (found->incoming && !found->answered)
        fake_misuse("an incoming request was neither accepted nor rejected");
    leave(found, home_of(found), NULL);
    fake_destroy(found);
    return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel) {
    FAKE_ID_CALL(id);
    call->channel = channel;
    struct fake_channel *to = channel ? fake_find(FAKE_EVENT_CHANNEL, channel) : NULL;
    // rdma-core 56, librdmacm/cma.c, rdma_migrate_id(): refuses to move a synchronous ID
    // without a new channel.
    if (!found || call->failed || (!found->channel && !to))
        return fake_answer(call, EINVAL);
    wait_for_acknowledgements(found);
    struct fake_channel *from = home_of(found);
    stand_on(found, to);
    leave(found, from, home_of(found));
    return 0;
}
