// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// batch_verbs.c -- lists of work requests written by hand in verbs, prepared once or rebuilt

#include <errno.h>
#include <stddef.h>

#include "loops.h"
#include "verbs_setup.h"

enum { MAX_REQUESTS = 128, MAX_RECEIVES = 16, FLUSH_BYTES = 8 };

static struct ibv_send_wr list[MAX_REQUESTS];
static struct ibv_sge sges[MAX_REQUESTS];

static inline void describe_request(unsigned i, enum ibv_wr_opcode opcode, uint32_t bytes,
                                    unsigned flags) {
    sges[i] = (struct ibv_sge){(uint64_t)(uintptr_t)local->addr, bytes, local->lkey};
    list[i].wr_id = 0;
    list[i].next = &list[i + 1];
    list[i].sg_list = &sges[i];
    list[i].num_sge = 1;
    list[i].opcode = opcode;
    list[i].send_flags = flags;
    list[i].wr.rdma.remote_addr = remote_addr;
    list[i].wr.rdma.rkey = rkey;
}

static inline unsigned describe_write(unsigned i) {
    describe_request(i, IBV_WR_RDMA_WRITE, TRANSFER_BYTES, IBV_SEND_SIGNALED);
    return i + 1;
}

static inline unsigned describe_read(unsigned i) {
    describe_request(i, IBV_WR_RDMA_READ, TRANSFER_BYTES, IBV_SEND_SIGNALED);
    return i + 1;
}

static inline unsigned describe_send(unsigned i) {
    describe_request(i, IBV_WR_SEND, TRANSFER_BYTES, IBV_SEND_SIGNALED);
    return i + 1;
}

static inline unsigned describe_flush(unsigned i) {
    describe_request(i, IBV_WR_RDMA_READ, FLUSH_BYTES, IBV_SEND_SIGNALED);
    return i + 1;
}

static inline unsigned describe_atomicwrite(unsigned i) {
    describe_request(i, IBV_WR_RDMA_WRITE, FLUSH_BYTES,
                     IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_FENCE);
    return i + 1;
}

// An emulated flush is a read after the writes.
static inline unsigned describe_write_and_flush(unsigned i) {
    describe_request(i, IBV_WR_RDMA_WRITE, TRANSFER_BYTES, 0);
    describe_request(i + 1, IBV_WR_RDMA_READ, FLUSH_BYTES, IBV_SEND_SIGNALED);
    return i + 2;
}

static inline unsigned describe_atomic(unsigned i) {
    describe_request(i, IBV_WR_ATOMIC_FETCH_AND_ADD, sizeof(uint64_t),
                     IBV_SEND_SIGNALED | IBV_SEND_FENCE);
    list[i].wr.atomic.remote_addr = remote_addr;
    list[i].wr.atomic.compare_add = 0;
    list[i].wr.atomic.rkey = rkey;
    return i + 1;
}

static inline void build_list(unsigned length, unsigned (*add)(unsigned)) {
    unsigned used = 0;
    for (unsigned n = 0; n < length; n++)
        used = add(used);
    list[used - 1].next = NULL;
}

static inline void post_list(void) {
    struct ibv_send_wr *bad;
    must(ibv_post_send(qp, list, &bad) == 0, "ibv_post_send");
}

static inline void prepared(unsigned length, unsigned (*add)(unsigned), unsigned long times) {
    build_list(length, add);
    for (unsigned long i = 0; i < times; i++)
        post_list();
}

static inline void built(unsigned length, unsigned (*add)(unsigned), unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        build_list(length, add);
        post_list();
    }
}

// The counterpart of an array of librpma is a list that is built for each post.
static inline void array(unsigned length, unsigned (*add)(unsigned), unsigned long times) {
    built(length, add, times);
}

// No request is cleared.
static inline void cleared(unsigned length, unsigned (*add)(unsigned), unsigned long times) {
    built(length, add, times);
}

#define clear_write describe_write
#define clear_write_and_flush describe_write_and_flush

static inline void set(unsigned length, unsigned (*add)(unsigned), unsigned long times) {
    build_list(length, add);
    for (unsigned long i = 0; i < times; i++)
        for (unsigned n = 0; n < length; n++)
            ((volatile struct ibv_send_wr *)list)[n].wr.rdma.remote_addr = remote_addr + n;
}

// Each write has a list of `length` SGEs.
static inline void write_sges(unsigned length, unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        describe_write(0);
        for (unsigned n = 1; n < length; n++)
            sges[n] = buffer();
        list[0].num_sge = (int)length;
        list[0].next = NULL;
        post_list();
    }
}

static void receives(unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        struct ibv_recv_wr wrs[MAX_RECEIVES], *bad;
        for (unsigned n = 0; n < MAX_RECEIVES; n++) {
            sges[n] = buffer();
            wrs[n] = (struct ibv_recv_wr){.next = n + 1 < MAX_RECEIVES ? &wrs[n + 1] : NULL,
                                          .sg_list = &sges[n],
                                          .num_sge = 1};
        }
        must(ibv_post_recv(qp, wrs, &bad) == 0, "ibv_post_recv");
    }
}

static void atomics_1(unsigned long times) {
    built(1, describe_atomic, times);
}

static void atomics_4(unsigned long times) {
    built(4, describe_atomic, times);
}

static void refused(unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        struct ibv_send_wr *bad;
        build_list(1, describe_write);
        must(ibv_post_send(full_qp, list, &bad) == ENOMEM, "ibv_post_send");
    }
}

static void refused_unlogged(unsigned long times) {
    refused(times);
}

#ifdef PROVIDER_NATIVE
// Native operations cannot be prepared: each of them is a call of the provider.
static inline void post_native(unsigned length, unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        ibv_wr_start(qpx);
        for (unsigned n = 0; n < length; n++) {
            qpx->wr_id = 0;
            qpx->wr_flags = 0;
            ibv_wr_rdma_write(qpx, rkey, remote_addr);
            ibv_wr_set_sge(qpx, local->lkey, (uint64_t)(uintptr_t)local->addr, TRANSFER_BYTES);
            qpx->wr_id = 0;
            qpx->wr_flags = IBV_SEND_SIGNALED;
            ibv_wr_flush(qpx, rkey, remote_addr, TRANSFER_BYTES, IBV_FLUSH_PERSISTENT,
                         IBV_FLUSH_RANGE);
        }
        must(ibv_wr_complete(qpx) == 0, "ibv_wr_complete");
    }
}
#endif

// The counterpart of an array that was filled once is a list that was built once.
static inline void ready(unsigned length, unsigned (*add)(unsigned), unsigned long times) {
    prepared(length, add, times);
}

#define LOOP(method, what, length, through, add) LIST(method, what, length, add)
#define KIND(what)                         \
    LIST(ready, what, 1, describe_##what)  \
    LIST(ready, what, 16, describe_##what) \
    LIST(built, what, 16, describe_##what) \
    LIST(set, what, 16, describe_##what)
#define LIST(method, what, length, add)                           \
    static void method##_##what##_##length(unsigned long times) { \
        method(length, add, times);                               \
    }
#define LOOPS(length)                                             \
    LIST(prepared, write, length, describe_write)                 \
    LIST(built, write, length, describe_write)                    \
    LIST(array, write, length, describe_write)                    \
    LIST(set, write, length, describe_write)                      \
    LIST(prepared, write_flush, length, describe_write_and_flush) \
    LIST(built, write_flush, length, describe_write_and_flush)    \
    LIST(array, write_flush, length, describe_write_and_flush)
#define NATIVE_LOOPS(length)                                                \
    static void array_write_native_flush_##length(unsigned long times) {    \
        post_native(length, times);                                         \
    }                                                                       \
    static void prepared_write_native_flush_##length(unsigned long times) { \
        post_native(length, times);                                         \
    }                                                                       \
    static void built_write_native_flush_##length(unsigned long times) {    \
        post_native(length, times);                                         \
    }
#define NATIVE_CLEARED(length)                                             \
    static void cleared_write_native_flush_##length(unsigned long times) { \
        post_native(length, times);                                        \
    }

#include "batch_loops.h"
