// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// core.c -- objects and misuse: live objects, their dependencies, detected misuses.

#include "internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct fake_device fake_device_state;

static struct fake_object *objects; // alive
static struct fake_object *dead;    // released
static char misuses[BUFSIZ], left[BUFSIZ];

enum { PAGE_BYTES = 4096, MAX_SPARE = 64 };
static void *spare_pages[MAX_SPARE]; // inaccessible
static unsigned spare_count;

static const char *const kind_names[FAKE_KINDS] = {
    "device list",
    "PD",
    "MR",
    "CQ",
    "channel",
    "QP",
    "SRQ",
    "CM id",
    "event channel",
    "list of names",
    "address list",
    "unacknowledged CM event",
    "allocation",
    "mapping",
};

void fake_misuse_text(const char *text) {
    const unsigned long used = strlen(misuses);
    snprintf(misuses + used, sizeof(misuses) - used, "%s: %s\n", fake_function, text);
}

const char *fake_misuses(void) {
    return misuses;
}

void fake_touch(const void *bytes, size_t len) {
    unsigned char copy[sizeof(struct fake_call)];
    if (memcmp(memcpy(copy, bytes, len), bytes, len) != 0) // memcheck reports undefined bytes
        abort();
}

void fake_copy(void *to, const void *bytes, size_t len) {
    fake_touch(memcpy(to, bytes, len), len);
}

// ---- objects -------------------------------------------------------------------------------

void *fake_create(enum fake_kind kind, size_t size) {
    struct fake_object **place = &dead;
    while (*place && (!fake_device_state.reuses || (*place)->kind != kind || (*place)->page))
        place = &(*place)->next;
    struct fake_object *object = *place;
    if (object) {
        *place = object->next;
        memset(object, 0, size);
    } else {
        object = calloc(1, size);
    }
    object->kind = kind;
    object->next = objects;
    objects = object;
    return object;
}

void *fake_allocate_page(struct fake_object *object, size_t size) {
    if (size > PAGE_BYTES)
        abort();
    object->page = spare_count > 0
                       ? spare_pages[--spare_count]
                       : mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(object->page, PAGE_BYTES, PROT_READ | PROT_WRITE);
    object->outer = memset(object->page, 0, size);
    return object->page;
}

void *fake_next(enum fake_kind kind, const void *object) {
    struct fake_object *o = object ? ((const struct fake_object *)object)->next : objects;
    while (o && o->kind != kind)
        o = o->next;
    return o;
}

static void *look_up(struct fake_object *list, enum fake_kind kind, const void *outer) {
    while (list && (list->outer != outer || list->kind != kind))
        list = list->next;
    return list;
}

void *fake_find(enum fake_kind kind, const void *outer) {
    void *found = look_up(objects, kind, outer);
    if (!found && look_up(dead, kind, outer))
        fake_misuse("the %s was released before", kind_names[kind]);
    else if (!found)
        fake_misuse("%p is no %s", outer, kind_names[kind]);
    return found;
}

void fake_adopt(struct fake_object *object, void *parent) {
    struct fake_object **place = object->parents;
    if (!parent)
        return;
    while (*place)
        place++;
    *place = parent;
    (*place)->children++;
}

void fake_abandon(struct fake_object *object, void *parent) {
    struct fake_object **place = object->parents;
    if (!parent)
        return;
    while (*place != parent)
        place++;
    *place = NULL;
    ((struct fake_object *)parent)->children--;
    ((struct fake_object *)parent)->refused_children -= object->refused;
}

void fake_destroy(void *what) {
    struct fake_object *object = what, **at = &objects;
    while (*at != object)
        at = &(*at)->next;
    *at = object->next;
    for (unsigned i = 0; i < FAKE_LENGTH(object->parents); i++)
        fake_abandon(object, object->parents[i]);
    if (object->kind == FAKE_COMP_CHANNEL || object->kind == FAKE_EVENT_CHANNEL)
        close(((struct fake_channel *)object)->queue.fd);
    if (object->page) // remains reserved, so that a use crashes
        mprotect(object->page, PAGE_BYTES, PROT_NONE);
    object->next = dead;
    dead = object;
}

int fake_refuse(struct fake_object *object, int error) {
    for (unsigned i = 0; i < FAKE_LENGTH(object->parents); i++)
        if (object->parents[i] && !object->refused)
            object->parents[i]->refused_children++;
    object->refused = true;
    return error;
}

void fake_has_users(const struct fake_object *object) {
    const unsigned in_use = object->children - object->refused_children;
    if (in_use > 0)
        fake_misuse("%u objects still use the %s", in_use, kind_names[object->kind]);
}

// A child whose release was refused blocks its parent only if keeps_order is set; the parent
// then counts as refused, not as a leak. Other parents are released together with such a
// child.
int fake_release(const char *name, enum fake_kind kind, const void *outer, bool keeps_order) {
    FAKE_CALL_OF(name, outer);
    struct fake_object *found = fake_find(kind, outer);
    if (!found)
        return EINVAL;
    if (kind == FAKE_CQ && ((struct fake_cq *)found)->unacked)
        fake_misuse("%u events are not acknowledged, it would block for ever",
                    ((struct fake_cq *)found)->unacked);
    if (keeps_order)
        fake_has_users(found);
    if (call->failed || (keeps_order && found->children > 0))
        return fake_refuse(found, call->failed ? call->error : EBUSY);
    if (found->children > found->refused_children)
        return EBUSY;
    fake_forget_events(found);
    fake_destroy(found);
    return 0;
}

const char *fake_leaks(void) {
    FAKE_LOCKED;
    unsigned count[FAKE_KINDS] = {0};
    unsigned long bytes = 0;
    char *end = left;
    for (struct fake_object *o = objects; o; o = o->next) {
        if (o->refused || o->internal)
            continue;
        count[o->kind]++;
        bytes += o->bytes;
    }
    *end = '\0';
    for (int kind = 0; kind < FAKE_KINDS; kind++)
        if (count[kind])
            end += sprintf(end, "%u %s left\n", count[kind], kind_names[kind]);
    if (bytes)
        sprintf(end, "%lu bytes left\n", bytes);
    return left;
}

size_t fake_bytes_held(void) {
    FAKE_LOCKED;
    unsigned long bytes = 0;
    for (struct fake_object *o = objects; o; o = o->next)
        bytes += o->bytes;
    return bytes;
}

void fake_reset(void) {
    FAKE_LOCKED;
    while (objects)
        fake_destroy(objects);
    for (struct fake_object *object; (object = dead);) {
        dead = object->next;
        if (object->page && spare_count < MAX_SPARE)
            spare_pages[spare_count++] = object->page;
        else if (object->page)
            munmap(object->page, PAGE_BYTES);
        free(object);
    }
    misuses[0] = '\0';
    fake_quiet(false);
    fake_async_reset();
    fake_faults_reset();
    fake_device_reset();
}

struct fake_device *fake_device(void) {
    return &fake_device_state;
}

struct sim_profile *fake_profile(void) {
    return &fake_device_state.profile;
}

struct sim_profile fake_profile_reported(void) {
    const uint64_t both = SIM_CAP_FLUSH_GLOBAL | SIM_CAP_FLUSH_PERSISTENT;
    struct sim_profile profile = *fake_profile();
    profile.has_native_flush |= fake_device()->flush_caps == both;
    return profile;
}
