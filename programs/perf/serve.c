// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// serve.c -- the server's side of a load: receives and echoes messages, and checks the data

#include "serve.h"

#include "failure.h"
#include "pattern.h"
#include "waiting.h"

#include <string.h>

#define CREDIT_SIZE 8
#define CREDITS_UNDER_WAY 8

static size_t place_of(const struct lane *lane, uint64_t number) {
    const struct plan *plan = &lane->crew->plan;
    uint64_t places = plan_target_places(plan);
    return (lane->index * places + number % places) * plan_stride(plan);
}

static void *data_of(const struct lane *lane, uint64_t number) {
    return (char *)lane->crew->memory.ptr + place_of(lane, number);
}

struct queues serve_queues(const struct plan *plan) {
    const struct operation *operation = &operations[plan->operation];
    if (!operation->is_message)
        return (struct queues){1, 1};
    return (struct queues){.sends = operation->is_echoed ? plan_sends(plan) : CREDITS_UNDER_WAY,
                           .receives = plan_receives(plan)};
}

bool serve_post_receives(struct crew *crew, struct rpma_conn_req *request) {
    struct lane *lane = &crew->lanes[crew->connected];
    for (uint64_t i = 0; crew->operation->is_message && i < plan_receives(&crew->plan); i++)
        if (!succeeds(
                rpma_conn_req_recv(request, crew->mr, place_of(lane, i), crew->plan.size, lane),
                "cannot post a receive"))
            return false;
    return true;
}

static bool post_receive(struct lane *lane, uint64_t number) {
    return succeeds(rpma_recv(lane->link.conn, lane->crew->mr, place_of(lane, number),
                              lane->crew->plan.size, lane),
                    "cannot post a receive");
}

static bool is_right(const struct lane *lane, uint64_t place, uint64_t number) {
    size_t size = lane->crew->plan.size;
    size_t wrong = pattern_check(data_of(lane, place), size, lane->index, number);
    return wrong == size ||
           fail("verification failed: connection %lu, operation %lu: byte %zu of "
                "%zu is wrong in the server's memory",
                (unsigned long)lane->index, (unsigned long)number, wrong, size);
}

static bool echo(struct lane *lane, uint64_t number) {
    const struct plan *plan = &lane->crew->plan;
    uint64_t every = plan_signal_every(plan);
    int flags = ++lane->sent % every ? RPMA_F_COMPLETION_ON_ERROR : RPMA_F_COMPLETION_ALWAYS;
    if (plan->size <= plan->inline_size)
        flags |= RPMA_F_INLINE;
    return post_receive(lane, number + plan->depth) &&
           succeeds(rpma_send(lane->link.conn, lane->crew->mr, place_of(lane, number),
                              plan->size, flags, lane),
                    "cannot send an echo");
}

// Allows the client to send more messages once half of the receives are posted again.
static bool give_credit(struct lane *lane) {
    if (++lane->consumed < plan_receives(&lane->crew->plan) / 2)
        return true;
    lane->consumed = 0;
    return succeeds(rpma_send(lane->link.conn, lane->crew->mr, 0, CREDIT_SIZE,
                              RPMA_F_COMPLETION_ALWAYS, lane),
                    "cannot send a credit");
}

static bool handle(struct lane *lane, const struct ibv_wc *wc, uint64_t now) {
    const struct plan *plan = &lane->crew->plan;
    (void)now;
    if (!(wc->opcode & IBV_WC_RECV))
        return true; // the completion of an echo or a credit
    uint64_t number = atomic_load_explicit(&lane->received, memory_order_relaxed);
    if (wc->byte_len != plan->size)
        return fail("a message has %u bytes, not %lu", wc->byte_len, (unsigned long)plan->size);
    if (plan->verify && !is_right(lane, number, number))
        return false;
    atomic_store_explicit(&lane->received, number + 1, memory_order_relaxed);
    if (lane->crew->operation->is_echoed)
        return echo(lane, number);
    return post_receive(lane, number) && give_credit(lane);
}

void *serve_run(void *argument) {
    struct worker *worker = argument;
    int taken = 0;
    while (taken >= 0 && !crew_is_stopped(worker->crew)) {
        taken = worker_take(worker, handle);
        if (taken == 0 && !worker_wait(worker, worker->rcq ? worker->rcq : worker->cq))
            break;
    }
    atomic_store(&worker->has_ended, true);
    crew_wake_main(worker->crew);
    return NULL;
}

void serve_fill(struct crew *crew) {
    const struct plan *plan = &crew->plan;
    memset(crew->memory.ptr, 0, plan_target_size(plan));
    for (uint64_t i = 0; crew->operation->is_read && i < plan->connections; i++)
        for (uint64_t place = 0; place < plan->depth; place++)
            pattern_fill(data_of(&crew->lanes[i], place), plan->size, i, place);
}

// Waits, because the workers may not have handled all messages that have arrived.
static bool await_messages(struct lane *lane, uint64_t count) {
    uint64_t until = now_ns() + (uint64_t)PATIENCE_MS * 1000000;
    while (atomic_load(&lane->received) < count && now_ns() < until && !failure() &&
           !is_stopping())
        wait_readable(-1, 1);
    uint64_t received = atomic_load(&lane->received);
    return received == count ||
           fail("verification failed: connection %lu: %lu of %lu messages arrived",
                (unsigned long)lane->index, (unsigned long)received, (unsigned long)count);
}

// Each place must have the data of the last operation on it.
static bool check_places(struct lane *lane, uint64_t count) {
    const struct plan *plan = &lane->crew->plan;
    for (uint64_t place = 0; place < plan->depth; place++) {
        uint64_t rounds = count > place ? (count - place - 1) / plan->depth : 0;
        if (count > place) {
            if (!is_right(lane, place, place + rounds * plan->depth))
                return false;
        } else if (zero_check(data_of(lane, place), plan->size) != plan->size) {
            return fail("verification failed: connection %lu wrote where it had "
                        "nothing to write",
                        (unsigned long)lane->index);
        }
    }
    return true;
}

bool serve_check(struct crew *crew, const uint64_t *counts) {
    for (uint64_t i = 0; i < crew->plan.connections; i++) {
        struct lane *lane = &crew->lanes[i];
        if (crew->operation->is_message && !await_messages(lane, counts[i]))
            return false;
        if (!crew->operation->is_message && !crew->operation->is_read &&
            !check_places(lane, counts[i]))
            return false;
    }
    return true;
}
