// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// null_verbs.c -- libibverbs that does nothing

#include "provider.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#undef ibv_reg_mr

enum { ARENA_BYTES = 1 << 28, DIFFERENT_CALLS = 64, KEY = 7 };

// A completion channel, and the CQ that its events name: the first one.
struct channel {
    struct ibv_comp_channel base;
    struct ibv_cq *cq;
};

static struct provider_count counts[DIFFERENT_CALLS + 1];
static int is_counting;

const struct provider_count *provider_counts(void) {
    return counts;
}

void provider_reset(void) {
    is_counting = 1;
    for (unsigned i = 0; i < DIFFERENT_CALLS; i++)
        counts[i] = (struct provider_count){0};
}

// Names are compared by address: each call passes its own __func__.
void provider_count(const char *call) {
    if (!is_counting)
        return;
    unsigned i = 0;
    while (counts[i].call != NULL && counts[i].call != call)
        i++;
    if (i == DIFFERENT_CALLS)
        abort();
    counts[i].call = call;
    counts[i].times++;
}

// Does not use malloc(), because bench/connection counts the allocations of the library.
void *provider_object(size_t size) {
    static _Alignas(64) unsigned char arena[ARENA_BYTES];
    static size_t used;
    unsigned char *object = arena + used;
    used += (size + 63) & ~(size_t)63;
    if (used > sizeof(arena)) {
        fputs("provider: more objects than the arena holds\n", stderr);
        abort();
    }
    return object;
}

static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc) {
    return 1;
}

static int poll_empty_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc) {
    return 0;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited_only) {
    if (is_counting) // waits also call it
        provider_count("ibv_req_notify_cq");
    return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    return 0;
}

static int post_send_to_full(struct ibv_qp *qp, struct ibv_send_wr *wr,
                             struct ibv_send_wr **bad) {
    *bad = wr;
    return ENOMEM;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    return 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                         struct ibv_recv_wr **bad) {
    return 0;
}

// A CQ of PROVIDER_EMPTY_CQ entries has its own context, so that no poll needs a condition.
static struct ibv_context *context_of(int cqe) {
    static struct ibv_context empty;
    if (cqe != PROVIDER_EMPTY_CQ)
        return provider_device();
    empty = *provider_device();
    empty.ops.poll_cq = poll_empty_cq;
    return &empty;
}

struct ibv_context *provider_device(void) {
    static struct ibv_device device = {.transport_type = IBV_TRANSPORT_IB};
    static struct ibv_context context = {
        .device = &device,
        .ops = {.poll_cq = poll_cq,
                .req_notify_cq = req_notify_cq,
                .post_send = post_send,
                .post_recv = post_recv,
                .post_srq_recv = post_srq_recv},
    };
    return &context;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes) {
    provider_count(__func__);
    *attributes = (struct ibv_device_attr){
        .max_qp_wr = 1 << 20, .max_cqe = 1 << 20, .max_sge = 16, .atomic_cap = IBV_ATOMIC_HCA};
    return 0;
}

// A queue pair with a send queue of PROVIDER_FULL_SQ entries also has a context of its own.
struct ibv_context *provider_context_of(struct ibv_context *device, uint32_t max_send_wr) {
    static struct ibv_context full;
    if (max_send_wr != PROVIDER_FULL_SQ)
        return device;
    full = *device;
    full.ops.post_send = post_send_to_full;
    return &full;
}

// librpma calls it after a failed post.
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask,
                 struct ibv_qp_init_attr *initial) {
    return ENOSYS;
}

struct ibv_device **ibv_get_device_list(int *number) {
    *number = 0;
    return NULL;
}

void ibv_free_device_list(struct ibv_device **list) {}

const char *ibv_get_device_name(struct ibv_device *of) {
    return of->name;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
    provider_count(__func__);
    struct ibv_pd *pd = provider_object(sizeof(*pd));
    pd->context = context;
    return pd;
}

// These calls are counted and succeed.
SUCCEEDS(ibv_dealloc_pd, struct ibv_pd *pd)
SUCCEEDS(ibv_dereg_mr, struct ibv_mr *mr)
SUCCEEDS(ibv_destroy_comp_channel, struct ibv_comp_channel *channel)
SUCCEEDS(ibv_destroy_cq, struct ibv_cq *cq)
SUCCEEDS(ibv_destroy_srq, struct ibv_srq *srq)

static struct ibv_mr *region(struct ibv_pd *pd, void *addr, size_t length) {
    struct ibv_mr *mr = provider_object(sizeof(*mr));
    *mr = (struct ibv_mr){.context = pd->context,
                          .pd = pd,
                          .addr = addr,
                          .length = length,
                          .lkey = KEY,
                          .rkey = KEY};
    return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access) {
    provider_count(__func__);
    return region(pd, addr, length);
}

// The macro ibv_reg_mr() calls this function when the access flags are not constant.
struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned access) {
    provider_count("ibv_reg_mr");
    return region(pd, addr, length);
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
    provider_count(__func__);
    struct channel *channel = provider_object(sizeof(*channel));
    channel->base.context = context;
    return &channel->base;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector) {
    provider_count(__func__);
    struct ibv_cq *cq = provider_object(sizeof(*cq));
    cq->context = context_of(cqe);
    cq->channel = channel;
    cq->cq_context = cq_context;
    cq->cqe = cqe;
    pthread_mutex_init(&cq->mutex, NULL);
    pthread_cond_init(&cq->cond, NULL);
    struct channel *named_by = (struct channel *)channel;
    if (named_by != NULL && named_by->cq == NULL)
        named_by->cq = cq;
    return cq;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context) {
    *cq = ((struct channel *)channel)->cq;
    *cq_context = (*cq)->cq_context;
    return 0;
}

// Locks and signals like ibv_ack_cq_events() of libibverbs: the counts must include this cost
// of a wait that acknowledges its event.
void ibv_ack_cq_events(struct ibv_cq *cq, unsigned events) {
    pthread_mutex_lock(&cq->mutex);
    cq->comp_events_completed += events;
    pthread_cond_signal(&cq->cond);
    pthread_mutex_unlock(&cq->mutex);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attributes) {
    provider_count(__func__);
    struct ibv_srq *srq = provider_object(sizeof(*srq));
    srq->context = pd->context;
    srq->pd = pd;
    return srq;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attributes, int mask) {
    return ENOSYS;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask) {
    return ENOSYS;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
    errno = ENOSYS;
    return -1;
}

void ibv_ack_async_event(struct ibv_async_event *event) {}

const char *ibv_event_type_str(enum ibv_event_type event) {
    return "event";
}

const char *ibv_wc_status_str(enum ibv_wc_status status) {
    return "status";
}
