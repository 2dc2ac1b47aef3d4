// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// events.c -- events on real descriptors, so that O_NONBLOCK, poll() and signals have their
// real effect; asynchronous events of devices: of ports, queue pairs and queues.
//
// The waits of the kernel behave alike: ucma_get_event() (Linux 7.3,
// drivers/infiniband/core/ucma.c) and ib_uverbs_event_read() (uverbs_main.c) return EAGAIN
// with O_NONBLOCK and end at a signal whose handler was installed without SA_RESTART.

#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

void fake_queue_open(struct fake_queue *queue) {
    queue->count = 0;
    queue->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    if (queue->fd == -1)
        fake_misuse("no descriptor left");
}

static void *take(struct fake_queue *queue, unsigned at) {
    void *const what = queue->all[at], **const place = &queue->all[at];
    memmove(place, place + 1, (--queue->count - at) * sizeof(*place));
    return what;
}

void fake_queue_push(struct fake_queue *queue, void *what) {
    const uint64_t one = 1;
    if (queue->count == FAKE_LENGTH(queue->all) ||
        write(queue->fd, &one, sizeof(one)) != sizeof(one))
        abort();
    queue->all[queue->count++] = what;
}

void *fake_queue_remove(struct fake_queue *queue, bool (*match)(void *what, void *with),
                        void *with) {
    for (unsigned i = 0; i < queue->count; i++) {
        if (!match(queue->all[i], with))
            continue;
        // Another thread may have read the count already and be about to take an event.
        uint64_t value;
        const struct iovec count = {&value, sizeof(value)};
        (void)!preadv2(queue->fd, &count, 1, -1, RWF_NOWAIT);
        return take(queue, i);
    }
    return NULL;
}

static _Thread_local int unblocked; // the signal that the next wait of this thread unblocks

void fake_wait_unblocks(int signal) {
    unblocked = signal;
}

static bool wait_for_one(const struct fake_queue *queue) {
    struct pollfd ready = {.fd = queue->fd, .events = POLLIN};
    uint64_t value;
    sigset_t mask;
    if (unblocked) {
        pthread_sigmask(SIG_SETMASK, NULL, &mask);
        sigdelset(&mask, unblocked);
        if (ppoll(&ready, 1, NULL, &mask) < 0) { // the signal ended the wait
            unblocked = 0;
            return false;
        }
    }
    return read(queue->fd, &value, sizeof(value)) == sizeof(value);
}

// Returns queue, or the queue of the channel if queue is NULL.
static struct fake_queue *enter(const char *name, const void *object, enum fake_kind channel,
                                struct fake_queue *queue) {
    FAKE_CALL_OF(name, object);
    struct fake_channel *found = queue ? NULL : fake_find(channel, object);
    if (call->failed || (!queue && !found))
        return fake_return_null(call, EINVAL);
    return queue ? queue : &found->queue;
}

void *fake_queue_take(const char *name, const void *object, enum fake_kind channel,
                      struct fake_queue *queue) {
    queue = enter(name, object, channel, queue);
    while (queue && wait_for_one(queue)) {
        fake_lock(name);
        if (queue->count > 0) // otherwise the event was removed meanwhile
            return take(queue, 0);
        fake_unlock(NULL);
    }
    return NULL;
}

struct fake_channel *fake_channel_new(enum fake_kind kind) {
    struct fake_channel *made = FAKE_NEW(kind, struct fake_channel, of_cqs);
    fake_queue_open(&made->queue);
    if (kind == FAKE_COMP_CHANNEL)
        made->of_cqs.fd = made->queue.fd;
    else
        made->of_ids.fd = made->queue.fd;
    return made;
}

struct fake_channel *fake_channel_on(enum fake_kind kind, int fd) {
    struct fake_channel *found = NULL;
    while ((found = fake_next(kind, found)) && found->queue.fd != fd)
        ;
    return found;
}

// ---- events of the devices -----------------------------------------------------------------

struct waiting {
    struct ibv_async_event event;
    struct fake_object *object; // the object of the event, or NULL
};

static struct fake_queue queues[3]; // of struct waiting, indexed by the number of the context

static struct fake_queue *queue_of(const struct ibv_context *context) {
    int number = 0;
    while (fake_context(number) != context)
        number++;
    return &queues[number];
}

int fake_async_open(int number) {
    if (!queues[number].fd)
        fake_queue_open(&queues[number]);
    return queues[number].fd;
}

static bool is_about(void *what, void *object) {
    return !object || ((struct waiting *)what)->object == object;
}

static void remove_about(struct fake_queue *queue, struct fake_object *object) {
    for (struct waiting *w; (w = fake_queue_remove(queue, is_about, object));)
        free(w);
}

// The descriptors are opened before a test counts its own. Like the contexts, they exist until
// the process ends.
void fake_async_reset(void) {
    for (unsigned i = 0; i < FAKE_LENGTH(queues); i++) {
        const int fd = fake_async_open((int)i);
        remove_about(&queues[i], NULL);
        const int flags = fcntl(fd, F_GETFL);
        if (flags & O_NONBLOCK)
            fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    }
}

static bool is_same(void *what, void *with) {
    return what == with;
}

// Linux 7.3, drivers/infiniband/core/uverbs_main.c, ib_uverbs_release_uevent(): events that
// were not taken are dropped. rdma-core 56, libibverbs/cmd_cq.c, ibv_cmd_destroy_cq(),
// libibverbs/cmd_qp.c, ibv_cmd_destroy_qp(), libibverbs/cmd_srq.c, ibv_cmd_destroy_srq(): wait
// until all taken events are acknowledged; without threads such a wait would never end.
void fake_forget_events(struct fake_object *object) {
    if (fake_is_quiet())
        fake_wait_for_zero(&object->unacked_async);
    if (object->unacked_async)
        fake_misuse("%u events of the device are not acknowledged, it would block for ever",
                    object->unacked_async);
    for (unsigned i = 0; i < FAKE_LENGTH(queues); i++)
        remove_about(&queues[i], object);
    if (object->kind == FAKE_CQ)
        while (fake_queue_remove(&((struct fake_cq *)object)->channel->queue, is_same, object))
            ;
}

static enum fake_kind kind_of(enum ibv_event_type type) {
    static const enum fake_kind kinds[] = {FAKE_CQ, FAKE_SRQ, FAKE_QP, FAKE_KINDS};
    return kinds[sim_about_of(type)];
}

void fake_async_event(struct ibv_context *context, enum ibv_event_type type, void *object,
                      int port) {
    FAKE_LOCKED;
    struct waiting *w = calloc(1, sizeof(*w));
    const enum fake_kind kind = kind_of(type);
    w->event.event_type = type;
    if (kind != FAKE_KINDS)
        w->object = fake_find(kind, object);
    if (kind != FAKE_KINDS || object)
        w->event.element.qp = object; // an object of no kind is a work queue
    else
        w->event.element.port_num = port;
    fake_queue_push(queue_of(context), w);
}

// rdma-core 56, libibverbs/device.c, ibv_get_async_event(): read() of one event, -1 when there
// is none; Linux 7.3, drivers/infiniband/core/uverbs_main.c, ib_uverbs_event_read().
int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
    struct waiting *taken = fake_queue_take(__func__, context, FAKE_KINDS, queue_of(context));
    if (!taken)
        return -1;
    FAKE_RELEASED = NULL;
    *event = taken->event;
    if (taken->object)
        taken->object->unacked_async++;
    free(taken);
    return 0;
}

// rdma-core 56, libibverbs/device.c, ibv_ack_async_event(): increments the counter in the
// object of the event, and wakes the destruction of the object.
void ibv_ack_async_event(struct ibv_async_event *event) {
    FAKE_LOCKED;
    const void *const outer = event->element.qp; // all pointers of the union overlap
    fake_note(__func__, outer);
    const enum fake_kind kind = kind_of(event->event_type);
    struct fake_object *found = kind != FAKE_KINDS ? fake_find(kind, outer) : NULL;
    if (found && found->unacked_async == 0)
        fake_misuse("more acknowledgements than events");
    else if (found)
        found->unacked_async--;
    fake_acknowledged();
}

const char *ibv_event_type_str(enum ibv_event_type event) {
    return event <= IBV_EVENT_WQ_FATAL ? "event of the fakes" : "unknown";
}
