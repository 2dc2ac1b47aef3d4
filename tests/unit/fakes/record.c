// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// record.c -- the record of calls, and the switch that makes some of them fail.

#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_CALLS = 2048, MAX_POSTS = 2048, MAX_FAULTS = 8 };

struct fault {
    const char *name;
    unsigned nth, seen;
    bool later;
    int error;
};

static struct fake_call *calls; // allocated once: sanitizers are slow with fresh large blocks
static unsigned call_count;
static struct fake_call overflow;
static struct fake_post *posts;
static struct fake_receive *received;
static unsigned post_count, received_count;
static struct fault faults[MAX_FAULTS];
static unsigned fault_count, faults_fired;
static const char *first_fault = "";
static char text[16384];

void fake_faults_reset(void) {
    call_count = 0;
    post_count = received_count = 0;
    fault_count = 0;
    faults_fired = 0;
    first_fault = "";
}

void fake_forget(void) {
    FAKE_LOCKED;
    call_count = 0;
    post_count = received_count = 0;
    for (struct fake_object *o = fake_first(); o; o = o->next)
        if (o->kind == FAKE_QP)
            ((struct fake_qp *)o)->sends = 0;
}

static void add_fault(const char *name, unsigned nth, bool later, int error) {
    FAKE_LOCKED;
    if (fault_count == MAX_FAULTS)
        abort();
    faults[fault_count++] = (struct fault){name, nth, 0, later, error};
}

void fake_fail(const char *name, unsigned nth, int error) {
    add_fault(name, nth, false, error);
}

void fake_fail_from(const char *name, unsigned nth, int error) {
    add_fault(name, nth, true, error);
}

void fake_faults_off(void) {
    FAKE_LOCKED;
    fault_count = 0;
}

unsigned fake_faults_fired(void) {
    FAKE_LOCKED;
    return faults_fired;
}

const char *fake_first_fault(void) {
    FAKE_LOCKED;
    return first_fault;
}

bool fake_fault_asked(const char *name, int *error) {
    bool fails = false;
    for (unsigned i = 0; i < fault_count; i++) {
        struct fault *f = &faults[i];
        if (f->name && strcmp(f->name, name) != 0)
            continue;
        f->seen++;
        if (f->seen == f->nth || (f->later && f->seen > f->nth)) {
            fails = true;
            *error = f->error;
        }
    }
    if (fails && faults_fired++ == 0)
        first_fault = name;
    return fails;
}

// A call that succeeds may leave any errno behind: libibverbs tries an ioctl() before the
// write() that older kernels know (rdma-core 56, libibverbs/cmd_fallback.c), librdmacm opens
// devices (librdmacm/cma.c, ucma_init_device()). Calls of the data path, and those that wait
// for events, leave errno alone.
static void disturb_errno(const char *name) {
    static const char *const quiet[] = {
        "ibv_post_send",       "ibv_post_recv",      "ibv_post_srq_recv", "ibv_poll_cq",
        "ibv_req_notify_cq",   "ibv_get_cq_event",   "rdma_get_cm_event", "ibv_ack_cq_events",
        "ibv_get_async_event", "ibv_ack_async_event"};
    for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++)
        if (strcmp(name, quiet[i]) == 0)
            return;
    if (strncmp(name, "ibv_wr_", 7) == 0)
        return;
    if (strncmp(name, "ibv_", 4) == 0 || strncmp(name, "rdma_", 5) == 0)
        errno = EXFULL; // no call fails with this number
}

struct fake_call *fake_note(const char *name, const void *object) {
    disturb_errno(name);
    if (!calls)
        calls = calloc(MAX_CALLS, sizeof(*calls));
    struct fake_call *call = &overflow;
    if (calls && !fake_is_quiet()) {
        if (call_count == MAX_CALLS)
            call_count = 0; // a soak test: only the newest calls matter
        call = &calls[call_count++];
    }
    memset(call, 0, sizeof(*call));
    call->name = name;
    call->object = object;
    return call;
}

struct fake_call *fake_enter(const char *name, const void *object) {
    struct fake_call *call = fake_note(name, object);
    call->failed = !fake_is_quiet() && fake_fault_asked(name, &call->error);
    return call;
}

const char *fake_calls(void) {
    FAKE_LOCKED;
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < call_count && used < sizeof(text); i++)
        if (!calls[i].libc)
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "",
                                     calls[i].name);
    return text;
}

unsigned fake_count(const char *name) {
    FAKE_LOCKED;
    unsigned count = 0;
    for (unsigned i = 0; i < call_count; i++)
        count += strcmp(calls[i].name, name) == 0;
    return count;
}

const struct fake_call *fake_nth(const char *name, unsigned nth) {
    FAKE_LOCKED;
    for (unsigned i = 0; i < call_count; i++)
        if (strcmp(calls[i].name, name) == 0 && --nth == 0)
            return &calls[i];
    return NULL;
}

const struct fake_call *fake_last(const char *name) {
    unsigned count = fake_count(name);
    return count ? fake_nth(name, count) : NULL;
}

void fake_take(struct fake_qp *qp, const struct fake_post *post) {
    if (!posts)
        posts = calloc(MAX_POSTS, sizeof(*posts));
    if (!posts)
        abort();
    if (post_count == MAX_POSTS)
        post_count = 0;
    posts[post_count++] = *post;
    qp->sends += !fake_device_state.fast && !fake_is_quiet();
    fake_execute(qp, post);
}

void fake_take_receive(const struct fake_receive *receive) {
    if (!received)
        received = calloc(MAX_POSTS, sizeof(*received));
    if (!received)
        abort();
    if (received_count == MAX_POSTS)
        received_count = 0;
    received[received_count++] = *receive;
}

unsigned fake_received_count(void) {
    FAKE_LOCKED;
    return received_count;
}

const struct fake_receive *fake_received(unsigned nth) {
    FAKE_LOCKED;
    return nth < received_count ? &received[nth] : NULL;
}

unsigned fake_posted_count(void) {
    FAKE_LOCKED;
    return post_count;
}

const struct fake_post *fake_posted(unsigned nth) {
    FAKE_LOCKED;
    return nth < post_count ? &posts[nth] : NULL;
}
