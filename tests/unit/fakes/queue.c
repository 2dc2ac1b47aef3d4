// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// queue.c -- events behind a real descriptor, so that O_NONBLOCK, poll() and signals are real.
// The kernel's waits behave alike: ucma_get_event() (Linux 7.3, drivers/infiniband/core/ucma.c)
// and ib_uverbs_event_read() (uverbs_main.c) answer EAGAIN with O_NONBLOCK and end at a signal
// whose handler was installed without SA_RESTART.

#include "internal.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

int fake_queue_open(struct fake_queue *queue) {
    queue->first = NULL;
    queue->end = &queue->first;
    queue->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    return queue->fd < 0 ? -1 : 0;
}

static void *take(struct fake_queue *queue) {
    struct fake_node *node = queue->first;
    if (!node)
        return NULL;
    void *what = node->what;
    queue->first = node->next;
    if (!queue->first)
        queue->end = &queue->first;
    free(node);
    return what;
}

void fake_queue_close(struct fake_queue *queue) {
    while (queue->first)
        take(queue);
    if (queue->fd >= 0)
        close(queue->fd);
    queue->fd = -1;
}

void fake_queue_push(struct fake_queue *queue, void *what) {
    struct fake_node *node = calloc(1, sizeof(*node));
    const uint64_t one = 1;
    if (!node || write(queue->fd, &one, sizeof(one)) != sizeof(one))
        abort();
    node->what = what;
    *queue->end = node;
    queue->end = &node->next;
}

static _Thread_local int let_in; // the signal that the next wait of this thread unblocks

void fake_wait_lets_in(int signal) {
    let_in = signal;
}

static int read_one(const struct fake_queue *queue) {
    uint64_t value;
    return read(queue->fd, &value, sizeof(value)) == sizeof(value) ? 0 : -1;
}

static int wait_for_one(const struct fake_queue *queue) {
    struct pollfd ready = {.fd = queue->fd, .events = POLLIN};
    sigset_t mask;
    if (let_in) {
        pthread_sigmask(SIG_SETMASK, NULL, &mask);
        sigdelset(&mask, let_in);
        if (ppoll(&ready, 1, NULL, &mask) < 0) { // it had to wait
            let_in = 0;
            return -1;
        }
    }
    return read_one(queue);
}

// The event that this thread has waited for may have been removed meanwhile.
void *fake_queue_take(struct fake_queue *queue) {
    while (wait_for_one(queue) == 0) {
        fake_lock();
        void *what = take(queue);
        if (what)
            return what;
        fake_unlock(NULL);
    }
    return NULL;
}

void *fake_queue_remove(struct fake_queue *queue, bool (*match)(void *what, void *with),
                        void *with) {
    for (struct fake_node **at = &queue->first; *at; at = &(*at)->next) {
        struct fake_node *node = *at;
        if (!match(node->what, with))
            continue;
        void *what = node->what;
        *at = node->next;
        if (!node->next)
            queue->end = at;
        free(node);
        // A thread that is about to take the event has its count already.
        uint64_t value;
        const struct iovec count = {&value, sizeof(value)};
        (void)!preadv2(queue->fd, &count, 1, -1, RWF_NOWAIT);
        return what;
    }
    return NULL;
}
