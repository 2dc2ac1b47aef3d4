// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// plan.c -- the settings of one load, which the client chooses and sends to the server

#include "plan.h"

#include "failure.h"
#include "operations.h"

#define FIELD(member, low, high, initial) \
    { #member, offsetof(struct plan, member), low, high, initial }

const struct setting settings[] = {
    FIELD(operation, 0, OPERATION_COUNT - 1, 0),
    FIELD(size, 1, SIZE_MAX_OF_OPERATION, 64),
    FIELD(depth, 1, 4096, 1),
    FIELD(batch, 1, 4096, 1),
    FIELD(prepared, 0, 1, 0),
    FIELD(elements, 1, ELEMENTS_MAX, 1),
    {"inline", offsetof(struct plan, inline_size), 0, 4096, 0},
    FIELD(connections, 1, CONNECTIONS_MAX, 1),
    FIELD(threads, 1, 64, 1),
    FIELD(poll, 0, 1, 0),
    FIELD(verify, 0, 1, 0),
    FIELD(ring, 0, RING_MAX, 0),
};
const size_t setting_count = sizeof(settings) / sizeof(settings[0]);

uint64_t *plan_field(struct plan *plan, const struct setting *setting) {
    return (uint64_t *)((char *)plan + setting->offset);
}

uint64_t plan_value(const struct plan *plan, const struct setting *setting) {
    return *(const uint64_t *)((const char *)plan + setting->offset);
}

void plan_add_to(const struct plan *plan, struct message *message) {
    for (size_t i = 0; i < setting_count; i++)
        message_add_number(message, settings[i].name, plan_value(plan, &settings[i]));
}

bool plan_get_from(struct plan *plan, const struct message *message) {
    for (size_t i = 0; i < setting_count; i++)
        if (!message_get_number(message, settings[i].name, settings[i].min, settings[i].max,
                                plan_field(plan, &settings[i])))
            return fail("the setting %s is missing or out of its range", settings[i].name);
    const char *conflict = plan_conflict(plan);
    return conflict ? fail("%s", conflict) : true;
}

const char *plan_conflict(const struct plan *plan) {
    const struct operation *operation = &operations[plan->operation];
    if (operation->is_atomic && plan->size != ATOMIC_SIZE)
        return "an atomic write has 8 bytes";
    if (operation->is_atomic && plan->elements > 1)
        return "an atomic write has one element";
    if (operation->is_atomic && plan->prepared && plan->verify)
        return "a prepared batch repeats the data of its atomic writes, which "
               "leaves nothing "
               "to "
               "verify";
    if (plan->ring && operation->type != RPMA_WORK_WRITE)
        return "a ledger is of writes, alone or with a flush";
    if (plan->ring && (plan->prepared || plan->verify))
        return "a ledger is of changing data that is checked later: no --prepared, no --verify";
    if (plan->ring && plan->ring < 4 * plan->depth)
        return "the ring must have at least four times as many places as the depth";
    if (plan->elements > plan->size)
        return "an operation needs a byte for each element";
    if (plan->depth % plan->batch)
        return "the depth must be a multiple of the batch";
    if (plan->prepared && plan->batch == 1)
        return "to prepare takes a batch of 2 operations or more";
    if (plan->threads > plan->connections)
        return "each thread needs a connection of its own";
    if (plan_target_size(plan) > UINT64_C(1) << 40)
        return "depth or ring, size and connections need more than a tebibyte of memory";
    return NULL;
}

uint64_t plan_stride(const struct plan *plan) {
    return (plan->size + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
}

uint64_t plan_receives(const struct plan *plan) {
    // Without echoes the server sends one credit for each half of its receives.
    uint64_t one_way = plan->depth < 16 ? 32 : 2 * plan->depth;
    return operations[plan->operation].is_echoed ? plan->depth : one_way;
}

uint64_t plan_target_places(const struct plan *plan) {
    const struct operation *operation = &operations[plan->operation];
    if (!operation->is_message)
        return plan->ring ? plan->ring : plan->depth;
    // An echo is sent from the buffer of its message, which no receive may overwrite meanwhile.
    return operation->is_echoed ? 2 * plan->depth : plan_receives(plan);
}

uint64_t plan_target_size(const struct plan *plan) {
    return plan->connections * plan_target_places(plan) * plan_stride(plan);
}

uint64_t plan_signal_every(const struct plan *plan) {
    if (!operations[plan->operation].is_echoed)
        return 1;
    if (plan->batch > 1)
        return plan->batch;
    return plan->depth < 64 ? 64 : plan->depth;
}

uint64_t plan_sends(const struct plan *plan) {
    uint64_t every = plan_signal_every(plan);
    // The other side has answered all but depth messages, but their completions may come later.
    return 4 * (every > plan->depth ? every : plan->depth);
}
