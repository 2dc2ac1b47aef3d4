// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lane.c -- one connection of the client's load: places, data, and posting

#include "lane.h"

#include "failure.h"
#include "pattern.h"
#include "recording.h"
#include "waiting.h"

#include <stdlib.h>
#include <string.h>

#define ELEMENT_GAP 64 // bytes between the elements of a memory list
#define CREDIT_SIZE 8
#define CREDIT_RECEIVES 4 // the server has at most two outstanding credits

static size_t gap_of(const struct plan *plan) {
    size_t gaps = plan->elements > 1 ? plan->elements * ELEMENT_GAP : 0;
    return (gaps + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
}

size_t lane_place_size(const struct plan *plan) {
    return plan_stride(plan) + gap_of(plan);
}

static uint64_t receives_of(const struct plan *plan) {
    const struct operation *operation = &operations[plan->operation];
    return operation->is_echoed ? plan->depth : CREDIT_RECEIVES;
}

// One more place is scratch, to put together the elements of a memory list.
size_t lane_memory_size(const struct plan *plan) {
    size_t receives =
        operations[plan->operation].is_message ? receives_of(plan) * plan_stride(plan) : 0;
    return plan->depth * lane_place_size(plan) + receives + plan_stride(plan);
}

struct queues lane_queues(const struct plan *plan) {
    const struct operation *operation = &operations[plan->operation];
    if (operation->is_message)
        return (struct queues){.sends = plan_sends(plan), .receives = receives_of(plan)};
    uint64_t of_each = operation->flush == NO_FLUSH ? 1 : 2;
    return (struct queues){.sends = plan->depth * of_each + 1, .receives = 1};
}

static char *memory_of(const struct lane *lane) {
    return (char *)lane->crew->memory.ptr + lane->base;
}

static size_t length_of_element(const struct plan *plan, uint64_t element) {
    size_t each = plan->size / plan->elements;
    return element + 1 < plan->elements ? each : plan->size - each * element;
}

// The offset of an element of the list of a place.
static size_t place_of_element(const struct plan *plan, size_t place, uint64_t element) {
    return place * lane_place_size(plan) +
           element * (plan->size / plan->elements + ELEMENT_GAP);
}

static char *scratch_of(const struct lane *lane) {
    return memory_of(lane) + lane_memory_size(&lane->crew->plan) -
           plan_stride(&lane->crew->plan);
}

// Copies between the elements of a place and one contiguous piece.
static void gather(struct lane *lane, size_t place, char *piece, bool to_elements) {
    const struct plan *plan = &lane->crew->plan;
    for (uint64_t element = 0; element < plan->elements; element++) {
        size_t length = length_of_element(plan, element);
        char *there = memory_of(lane) + place_of_element(plan, place, element);
        memcpy(to_elements ? there : piece, to_elements ? piece : there, length);
        piece += length;
    }
}

static void fill(struct lane *lane, size_t place, uint64_t number) {
    const struct plan *plan = &lane->crew->plan;
    char *piece = scratch_of(lane);
    if (lane->crew->operation->is_read) // so that data of an earlier read does not pass
        memset(piece, 0, plan->size);
    else if (lane->crew->recording)
        record_fill(piece, &lane->crew->recording->head, lane->index, number);
    else
        pattern_fill(piece, plan->size, lane->index, number);
    gather(lane, place, piece, true);
}

static bool is_right(const void *data, const struct lane *lane, uint64_t number) {
    size_t size = lane->crew->plan.size;
    size_t wrong = pattern_check(data, size, lane->index, number);
    return wrong == size ||
           fail("verification failed: connection %lu, operation %lu: byte %zu of "
                "%zu is wrong in the client's memory",
                (unsigned long)lane->index, (unsigned long)lane->done, wrong, size);
}

bool lane_check_read(struct lane *lane) {
    size_t place = lane->done % lane->crew->plan.depth;
    gather(lane, place, scratch_of(lane), false);
    return is_right(scratch_of(lane), lane, place);
}

bool lane_check_reply(struct lane *lane) {
    const struct plan *plan = &lane->crew->plan;
    const char *reply = (char *)lane->crew->memory.ptr + lane->receive_base +
                        lane->replies % receives_of(plan) * plan_stride(plan);
    return is_right(reply, lane, lane->replies);
}

bool lane_post_receive(struct lane *lane, uint64_t number) {
    const struct plan *plan = &lane->crew->plan;
    size_t size = lane->crew->operation->is_echoed ? plan->size : CREDIT_SIZE;
    size_t place = number % receives_of(plan) * plan_stride(plan);
    return succeeds(
        rpma_recv(lane->link.conn, lane->crew->mr, lane->receive_base + place, size, lane),
        "cannot post a receive");
}

static bool is_inline(const struct lane *lane) {
    const struct operation *operation = lane->crew->operation;
    return lane->crew->plan.size <= lane->crew->plan.inline_size && !operation->is_read &&
           !operation->is_atomic;
}

// Where the operation with this number happens in the server's memory.
static size_t remote_place(const struct lane *lane, uint64_t number) {
    const struct plan *plan = &lane->crew->plan;
    uint64_t places = plan->ring ? plan->ring : plan->depth;
    return (lane->index * places + number % places) * plan_stride(plan);
}

static struct rpma_work work_of(struct lane *lane, uint64_t number, int completion) {
    const struct plan *plan = &lane->crew->plan;
    const size_t place = number % plan->depth;
    const size_t at = place * lane_place_size(plan);
    struct rpma_work work = {
        .type = lane->crew->operation->type,
        .flags = completion | (is_inline(lane) ? RPMA_F_INLINE : 0),
        .op_context = lane,
        .remote = lane->crew->remote,
        .remote_offset = remote_place(lane, number),
        .local = {.mr = lane->crew->mr, .offset = lane->base + at, .len = plan->size},
    };
    if (lane->crew->operation->is_atomic)
        memcpy(&work.value, memory_of(lane) + at, sizeof(work.value));
    if (plan->elements == 1)
        return work;
    for (uint64_t i = 0; i < plan->elements; i++)
        lane->elements[i] =
            (struct rpma_sge){.mr = lane->crew->mr,
                              .offset = lane->base + place_of_element(plan, place, i),
                              .len = length_of_element(plan, i)};
    work.sgl = lane->elements;
    work.nsge = (uint32_t)plan->elements;
    return work;
}

static struct rpma_work flush_of(const struct lane *lane, uint64_t number,
                                 enum rpma_flush_type type, int completion) {
    const struct plan *plan = &lane->crew->plan;
    return (struct rpma_work){
        .type = RPMA_WORK_FLUSH,
        .flags = completion,
        .op_context = lane,
        .remote = lane->crew->remote,
        .remote_offset = remote_place(lane, number),
        .flush_type = type,
        .flush_len = plan->size,
    };
}

// Describes an operation and its flush, if it has one. Returns 1 or 2.
static uint32_t describe(struct lane *lane, uint64_t number, int completion,
                         struct rpma_work works[2]) {
    int flush = lane->crew->operation->flush;
    if (flush == NO_FLUSH) {
        works[0] = work_of(lane, number, completion);
        return 1;
    }
    works[0] = work_of(lane, number, RPMA_F_COMPLETION_ON_ERROR);
    works[1] = flush_of(lane, number, (enum rpma_flush_type)flush, completion);
    return 2;
}

// Adds the operation to the batch or, without one, posts it.
static bool post(struct lane *lane, uint64_t number, struct rpma_batch *batch) {
    uint64_t every = plan_signal_every(&lane->crew->plan);
    bool is_signaled = (number + 1) % every == 0;
    int completion = is_signaled ? RPMA_F_COMPLETION_ALWAYS : RPMA_F_COMPLETION_ON_ERROR;
    struct rpma_work works[2];
    uint32_t count = describe(lane, number, completion, works);
    int ret = batch ? 0 : rpma_post(lane->link.conn, works, count, NULL);
    for (uint32_t i = 0; batch && !ret && i < count; i++)
        ret = rpma_batch_add(batch, &works[i]);
    return succeeds(ret, "cannot post %s", lane->crew->operation->name);
}

static bool fill_batch(struct lane *lane, uint64_t first, struct rpma_batch *batch) {
    const struct plan *plan = &lane->crew->plan;
    for (uint64_t i = 0; i < plan->batch; i++)
        if (!post(lane, first + i, batch))
            return false;
    return true;
}

bool lane_prepare(struct lane *lane) {
    const struct plan *plan = &lane->crew->plan;
    uint64_t batches = plan->batch > 1 ? plan->depth / plan->batch : 0;
    lane->base = lane->index * lane_memory_size(plan);
    lane->receive_base = lane->base + plan->depth * lane_place_size(plan);
    lane->allowed = plan_receives(plan);
    lane->started = calloc(plan->depth, sizeof(*lane->started));
    lane->batches = calloc(plan->depth, sizeof(struct rpma_batch *));
    if (!lane->started || !lane->batches)
        return fail("out of memory");
    uint32_t of_each = lane->crew->operation->flush == NO_FLUSH ? 1 : 2;
    for (uint64_t i = 0; i < batches; i++)
        if (!succeeds(rpma_batch_new(lane->link.conn, (uint32_t)plan->batch * of_each,
                                     &lane->batches[i]),
                      "cannot make a batch") ||
            (plan->prepared && !fill_batch(lane, i * plan->batch, lane->batches[i])))
            return false;
    for (uint64_t i = 0; lane->crew->operation->is_message && i < receives_of(plan); i++)
        if (!lane_post_receive(lane, i))
            return false;
    return true;
}

static bool post_batch(struct lane *lane) {
    const struct plan *plan = &lane->crew->plan;
    struct rpma_batch *batch = lane->batches[lane->posted % plan->depth / plan->batch];
    if (!plan->prepared && (!succeeds(rpma_batch_reset(batch), "cannot reset a batch") ||
                            !fill_batch(lane, lane->posted, batch)))
        return false;
    return succeeds(rpma_batch_post(batch, NULL), "cannot post a batch of %s",
                    lane->crew->operation->name);
}

bool lane_post(struct lane *lane) {
    const struct plan *plan = &lane->crew->plan;
    uint64_t first = lane->posted % plan->depth;
    for (uint64_t i = 0; (plan->verify || plan->ring) && i < plan->batch; i++)
        fill(lane, first + i, lane->posted + i);
    uint64_t now = now_ns();
    for (uint64_t i = 0; i < plan->batch; i++)
        lane->started[first + i] = now;
    if (!(plan->batch > 1 ? post_batch(lane) : post(lane, lane->posted, NULL)))
        return false;
    lane->posted += plan->batch;
    if (lane->crew->operation->is_echoed)
        lane->unretired += plan->batch;
    return true;
}

bool lane_flush(struct lane *lane) {
    struct rpma_work flush =
        flush_of(lane, 0, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS);
    return succeeds(rpma_post(lane->link.conn, &flush, 1, NULL), "cannot flush");
}
