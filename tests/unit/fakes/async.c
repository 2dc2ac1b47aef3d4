// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// async.c -- events of the devices: ports, queue pairs, queues.

#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

struct waiting {
    struct ibv_async_event event;
    struct fake_object *object; // that it is about, or NULL
};

static struct fake_queue queues[2] = {{.fd = -1}, {.fd = -1}}; // of struct waiting

int fake_async_open(int number) {
    if (queues[number].fd < 0 && fake_queue_open(&queues[number]) != 0)
        abort();
    return queues[number].fd;
}

static bool is_about(void *what, void *object) {
    return !object || ((struct waiting *)what)->object == object;
}

static void remove_about(struct fake_queue *queue, struct fake_object *object) {
    for (struct waiting *w; (w = fake_queue_remove(queue, is_about, object));)
        free(w);
}

// The descriptors are there before a test counts its own, and stay, because the contexts do.
void fake_async_reset(void) {
    for (int i = 0; i < 2; i++) {
        fake_async_open(i);
        remove_about(&queues[i], NULL);
        fcntl(queues[i].fd, F_SETFL, fcntl(queues[i].fd, F_GETFL) & ~O_NONBLOCK);
    }
}

// Linux 7.3, drivers/infiniband/core/uverbs_main.c, ib_uverbs_release_uevent(): events that
// were not taken are dropped. rdma-core 56, libibverbs/cmd_cq.c, ibv_cmd_destroy_cq(),
// libibverbs/cmd_qp.c, ibv_cmd_destroy_qp(), libibverbs/cmd_srq.c, ibv_cmd_destroy_srq(): waits
// until those that were taken are acknowledged; without threads nobody would do that.
void fake_async_forget(struct fake_object *object, const char *call) {
    if (fake_is_quiet())
        fake_wait_for_zero(&object->unacked_async);
    if (object->unacked_async)
        fake_misuse("%s: %u events of the device are not acknowledged, it would block for ever",
                    call, object->unacked_async);
    for (int i = 0; i < 2; i++)
        remove_about(&queues[i], object);
}

// The kind of the objects that events of the type are about; rdma-core 56,
// libibverbs/device.c, ibv_get_async_event().
static enum fake_kind kind_of(enum ibv_event_type type) {
    switch (type) {
    case IBV_EVENT_CQ_ERR:
        return FAKE_CQ;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return FAKE_QP;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return FAKE_SRQ;
    default:
        return FAKE_KINDS;
    }
}

static const void *pointer_of(const struct ibv_async_event *event) {
    return event->element.qp; // all pointers of the union stand at one place
}

void fake_async_event(struct ibv_context *context, enum ibv_event_type type, void *object,
                      int port) {
    FAKE_LOCKED;
    struct waiting *w = calloc(1, sizeof(*w));
    if (!w)
        abort();
    const enum fake_kind kind = kind_of(type);
    w->event.event_type = type;
    if (kind != FAKE_KINDS) {
        w->event.element.qp = object;
        w->object = fake_find(kind, object, "fake_async_event");
    } else if (object) {
        w->event.element.qp = object; // a work queue, which the fakes do not have
    } else {
        w->event.element.port_num = port;
    }
    fake_queue_push(&queues[context != fake_context(0)], w);
}

// rdma-core 56, libibverbs/device.c, ibv_get_async_event(): read() of one event, -1 when there
// is none; Linux 7.3, drivers/infiniband/core/uverbs_main.c, ib_uverbs_event_read().
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
    fake_lock();
    struct fake_call call = *fake_enter("ibv_get_async_event", context);
    fake_unlock(NULL);
    struct fake_queue *queue = &queues[context != fake_context(0)];
    if (call.failed) {
        errno = call.error;
        return -1;
    }
    struct waiting *taken = fake_queue_take(queue);
    if (!taken)
        return -1;
    FAKE_RELEASED = 0;
    *event = taken->event;
    if (taken->object)
        taken->object->unacked_async++;
    free(taken);
    return 0;
}

// rdma-core 56, libibverbs/device.c, ibv_ack_async_event(): counts the event on its object, in
// whose memory the count is, and wakes its destruction.
void ibv_ack_async_event(struct ibv_async_event *event) {
    FAKE_LOCKED;
    fake_note("ibv_ack_async_event", pointer_of(event));
    const enum fake_kind kind = kind_of(event->event_type);
    struct fake_object *found =
        kind != FAKE_KINDS ? fake_find(kind, pointer_of(event), "ibv_ack_async_event") : NULL;
    if (found && found->unacked_async == 0)
        fake_misuse("ibv_ack_async_event: more than were taken");
    else if (found)
        found->unacked_async--;
    fake_acknowledged();
}

const char *ibv_event_type_str(enum ibv_event_type event) {
    return event <= IBV_EVENT_WQ_FATAL ? "event of the fakes" : "unknown";
}
