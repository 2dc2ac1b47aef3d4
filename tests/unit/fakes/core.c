// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// core.c -- objects and misuse: what is alive, what depends on what, what was done wrong.

#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct fake_device fake_device_state;
void (*fake_cm_reset)(void);

static pthread_mutex_t lock_of_all = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER;
static _Atomic bool quiet;
static struct fake_object *objects;             // alive
static struct fake_object *dead, **end_of_dead; // the newest released ones, oldest first
static unsigned dead_count;
static char misuses[4096];
static char left[1024];

enum { MAX_DEAD = 512 };

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

int fake_lock(void) {
    pthread_mutex_lock(&lock_of_all);
    return 0;
}

void fake_unlock(const int *unused) {
    (void)unused;
    pthread_mutex_unlock(&lock_of_all);
}

void fake_wait_for_zero(const unsigned *count) {
    while (*count > 0)
        pthread_cond_wait(&acknowledged, &lock_of_all);
}

void fake_acknowledged(void) {
    pthread_cond_broadcast(&acknowledged);
}

// Of the library of ThreadSanitizer, where there is one.
#define ANNOTATION(name) void name(const char *file, int line) __attribute__((weak))
ANNOTATION(AnnotateIgnoreReadsBegin);
ANNOTATION(AnnotateIgnoreReadsEnd);
ANNOTATION(AnnotateIgnoreWritesBegin);
ANNOTATION(AnnotateIgnoreWritesEnd);
ANNOTATION(AnnotateIgnoreSyncBegin);
ANNOTATION(AnnotateIgnoreSyncEnd);

int fake_hide(void) {
    if (quiet && AnnotateIgnoreSyncBegin) {
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
        AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    }
    return 0;
}

void fake_show(const int *unused) {
    (void)unused;
    if (quiet && AnnotateIgnoreSyncEnd) {
        AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
}

int fake_data_lock(void) {
    fake_hide();
    return fake_lock();
}

void fake_data_unlock(const int *unused) {
    fake_unlock(unused);
    fake_show(unused);
}

void fake_quiet(bool on) {
    quiet = on;
}

bool fake_is_quiet(void) {
    return quiet;
}

void fake_misuse(const char *format, ...) {
    size_t used = strlen(misuses);
    va_list args;
    va_start(args, format);
    vsnprintf(misuses + used, sizeof(misuses) - used, format, args);
    va_end(args);
    used = strlen(misuses);
    snprintf(misuses + used, sizeof(misuses) - used, "\n");
}

const char *fake_misuses(void) {
    return misuses;
}

void fake_touch(const void *bytes, size_t len) {
    unsigned sum = 0;
    for (size_t i = 0; i < len; i++)
        sum = sum * 31 + ((const unsigned char *)bytes)[i];
    static volatile unsigned sink;
    if (sum == 0x5eed5eedu) // memcheck reports an undefined byte only at a branch
        sink = sum;
    (void)sink;
}

void *fake_create(enum fake_kind kind, size_t size, size_t outer_offset) {
    struct fake_object *object = calloc(1, size);
    if (!object)
        abort();
    object->kind = kind;
    object->outer = (char *)object + outer_offset;
    object->next = objects;
    objects = object;
    return object;
}

void *fake_give_page(struct fake_object *object, size_t size) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    object->bytes_of_page = (size + page - 1) & ~(page - 1);
    object->page = mmap(NULL, object->bytes_of_page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (object->page == MAP_FAILED)
        abort();
    object->outer = object->page;
    return object->page;
}

static void give_back(struct fake_object *object) {
    if (object->page)
        munmap(object->page, object->bytes_of_page);
    if (object->kind == FAKE_QP)
        free(((struct fake_qp *)object)->pending);
    free(object);
}

struct fake_object *fake_first(void) {
    return objects;
}

static void *look_up(struct fake_object *list, enum fake_kind kind, const void *outer) {
    for (struct fake_object *o = list; o; o = o->next)
        if (o->outer == outer && o->kind == kind)
            return o;
    return NULL;
}

void *fake_find(enum fake_kind kind, const void *outer, const char *call) {
    void *found = look_up(objects, kind, outer);
    if (!found && look_up(dead, kind, outer))
        fake_misuse("%s: the %s was released before", call, kind_names[kind]);
    else if (!found)
        fake_misuse("%s: %p is no %s", call, outer, kind_names[kind]);
    return found;
}

void fake_destroy(struct fake_object *object) {
    struct fake_object **at = &objects;
    while (*at != object)
        at = &(*at)->next;
    *at = object->next;
    object->next = NULL;
    object->dead = true;
    if (object->page) // stays reserved, so that a use crashes instead of hitting another object
        mprotect(object->page, object->bytes_of_page, PROT_NONE);
    if (!dead)
        end_of_dead = &dead;
    *end_of_dead = object;
    end_of_dead = &object->next;
    if (++dead_count > MAX_DEAD) {
        struct fake_object *oldest = dead;
        dead = oldest->next;
        give_back(oldest);
        dead_count--;
    }
}

void fake_adopt(struct fake_object *parent) {
    parent->children++;
}

void fake_release(struct fake_object *parent, struct fake_object *child) {
    parent->children--;
    if (child->refused)
        parent->refused_children--;
}

int fake_refuse(struct fake_object *object, int error, struct fake_object *parent) {
    if (!object->refused && parent)
        parent->refused_children++;
    object->refused = true;
    return error;
}

int fake_busy(struct fake_object *object, const char *call, bool ours) {
    const unsigned in_use = object->children - object->refused_children;
    if (ours && in_use > 0)
        fake_misuse("%s: %u objects still use the %s", call, in_use, kind_names[object->kind]);
    // A child whose release was refused blocks only a parent that the library has to release in
    // order; other parents take it with them.
    return (ours ? object->children : in_use) > 0 ? EBUSY : 0;
}

const char *fake_left(void) {
    FAKE_LOCKED;
    unsigned count[FAKE_KINDS] = {0};
    size_t bytes = 0;
    unsigned unacked = 0;
    for (struct fake_object *o = objects; o; o = o->next) {
        if (o->dead || o->refused || o->internal)
            continue;
        count[o->kind]++;
        bytes += o->bytes;
        if (o->kind == FAKE_CQ)
            unacked += ((struct fake_cq *)o)->unacked;
    }
    size_t used = 0;
    left[0] = '\0';
    for (int kind = 0; kind < FAKE_KINDS; kind++)
        if (count[kind])
            used += (size_t)snprintf(left + used, sizeof(left) - used, "%u %s left\n",
                                     count[kind], kind_names[kind]);
    if (bytes)
        used += (size_t)snprintf(left + used, sizeof(left) - used, "%zu bytes left\n", bytes);
    if (unacked)
        snprintf(left + used, sizeof(left) - used, "%u unacknowledged CQ events left\n",
                 unacked);
    return left;
}

size_t fake_bytes_held(void) {
    FAKE_LOCKED;
    size_t bytes = 0;
    for (struct fake_object *o = objects; o; o = o->next)
        if (!o->dead)
            bytes += o->bytes;
    return bytes;
}

static void free_all(struct fake_object **list) {
    while (*list) {
        struct fake_object *next = (*list)->next;
        give_back(*list);
        *list = next;
    }
}

// Closes all descriptors and frees all memory of the fakes.
static void forget_objects(void) {
    for (struct fake_object *o = objects; o; o = o->next)
        if (o->kind == FAKE_COMP_CHANNEL)
            fake_queue_close(&((struct fake_comp_channel *)o)->queue);
    if (fake_cm_reset)
        fake_cm_reset();
    fake_async_reset();
    free_all(&objects);
    free_all(&dead);
    dead_count = 0;
}

void fake_reset(void) {
    FAKE_LOCKED;
    forget_objects();
    misuses[0] = '\0';
    quiet = false;
    fake_faults_reset();
    fake_target_reset();
    fake_device_state = (struct fake_device){
        .addresses = 1,
        .pmem = true,
        // Linux 7.3, drivers/infiniband/sw/rxe/rxe_param.h
        .max_cqe = (1 << 15) - 1,
        .vectors = 4, // as processors: rxe_verbs.c, rxe_register_device()
        .moderates = true,
        .max_wr = 1 << 20,
        .max_sge = FAKE_MAX_SGE,
        .max_sge_rd = FAKE_MAX_SGE_RD,
        .atomic_cap = IBV_ATOMIC_HCA, // rxe_param.h of rdma_rxe, rxe_init_device_param()
        .max_srq_sge = FAKE_MAX_SRQ_SGE,
        .transport = IBV_TRANSPORT_IB,
    };
}

struct fake_device *fake_device(void) {
    return &fake_device_state;
}
