// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// record.c -- the record of calls, and the switch that makes some of them fail.

#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RECORDS = 2048 }; // of each kind

struct fault {
    const char *name;
    unsigned nth, seen;
    bool later;
    int error;
};

static struct fake_call calls[MAX_RECORDS], unrecorded;
static struct fake_post posts[MAX_RECORDS];
static struct fake_receive received[MAX_RECORDS];
static unsigned call_count, post_count, received_count;
static struct fault faults[MAX_RECORDS];
static unsigned fault_count, faults_fired;
static const char *first_fault = "";

void fake_faults_reset(void) {
    call_count = post_count = received_count = 0;
    fault_count = faults_fired = 0;
    first_fault = "";
}

void fake_forget(void) {
    FAKE_LOCKED;
    call_count = post_count = received_count = 0;
    for (struct fake_qp *qp = NULL; (qp = fake_next(FAKE_QP, qp));)
        qp->sends = 0;
}

// ---- faults --------------------------------------------------------------------------------

static void add_fault(const char *name, unsigned nth, bool later, int error) {
    FAKE_LOCKED;
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

bool fake_fault_due(const char *name, int *error) {
    bool fails = false;
    for (struct fault *f = faults; f < faults + fault_count; f++) {
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

int fake_error(const struct fake_call *call, int refusal) {
    return call->failed ? call->error : refusal;
}

int fake_refused(int error) {
    errno = error;
    return -1;
}

int fake_answer(const struct fake_call *call, int refusal) {
    return call->failed || refusal ? fake_refused(fake_error(call, refusal)) : 0;
}

void *fake_return_null(const struct fake_call *call, int refusal) {
    errno = fake_error(call, refusal);
    return NULL;
}

// ---- calls ---------------------------------------------------------------------------------

// A successful call may change errno: libibverbs tries an ioctl() before the write() of older
// kernels (rdma-core 56, libibverbs/cmd_fallback.c), librdmacm opens devices (librdmacm/cma.c,
// ucma_init_device()). Calls of the data path, and those that wait for events, do not change
// errno.
static void change_errno(const char *name) {
    static const char *const quiet[] = {"ibv_wr_",
                                        "ibv_post_",
                                        "ibv_poll_cq",
                                        "ibv_req_notify_cq",
                                        "ibv_get_cq_event",
                                        "ibv_get_async_event",
                                        "ibv_ack_",
                                        "rdma_get_cm_event",
                                        "getaddrinfo",
                                        "malloc",
                                        "mmap"};
    for (unsigned i = 0; i < FAKE_LENGTH(quiet); i++)
        if (strncmp(name, quiet[i], strlen(quiet[i])) == 0)
            return;
    errno = EXFULL; // no call fails with this number
}

// When the record is full, it starts again: a long test uses only the newest calls and
// requests.
static unsigned next(unsigned *count) {
    if (*count == MAX_RECORDS)
        *count = 0;
    return (*count)++;
}

struct fake_call *fake_note(const char *name, const void *object) {
    change_errno(name);
    fake_function = name;
    struct fake_call *call = fake_is_quiet() ? &unrecorded : &calls[next(&call_count)];
    memset(call, 0, sizeof(*call));
    call->name = name;
    call->object = object;
    return call;
}

struct fake_call *fake_enter(const char *name, const void *object) {
    struct fake_call *call = fake_note(name, object);
    call->failed = !fake_is_quiet() && fake_fault_due(name, &call->error);
    return call;
}

const char *fake_calls(void) {
    FAKE_LOCKED;
    static char text[sizeof(calls)];
    char *end = text;
    *end = '\0';
    for (unsigned i = 0; i < call_count; i++)
        if (!calls[i].libc)
            end += sprintf(end, "%s%s", end > text ? " " : "", calls[i].name);
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
    return fake_nth(name, fake_count(name)); // number 0 does not exist
}

void fake_take(struct fake_qp *qp, const struct fake_post *post) {
    fake_copy(&posts[next(&post_count)], post, sizeof(*post));
    qp->sends += !fake_device_state.fast && !fake_is_quiet();
}

void fake_take_receive(const struct fake_receive *receive) {
    fake_copy(&received[next(&received_count)], receive, sizeof(*receive));
}

unsigned fake_posted_count(void) {
    FAKE_LOCKED;
    return post_count;
}

const struct fake_post *fake_posted(unsigned nth) {
    FAKE_LOCKED;
    return nth < post_count ? &posts[nth] : NULL;
}

unsigned fake_received_count(void) {
    FAKE_LOCKED;
    return received_count;
}

const struct fake_receive *fake_received(unsigned nth) {
    FAKE_LOCKED;
    return nth < received_count ? &received[nth] : NULL;
}
