// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// verbs.c -- the same loops written in verbs; they set only the fields that the opcode needs

#include <errno.h>
#include <stddef.h>

#include "loops.h"
#include "verbs_setup.h"

static inline int post_to(struct ibv_qp **to, struct ibv_sge *sge, enum ibv_wr_opcode opcode,
                          unsigned flags) {
    struct ibv_send_wr wr, *bad;
    wr.wr_id = 0;
    wr.next = NULL;
    wr.sg_list = sge;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = flags;
    if (opcode != IBV_WR_SEND) {
        wr.wr.rdma.remote_addr = remote_addr;
        wr.wr.rdma.rkey = rkey;
    }
    return ibv_post_send(*to, &wr, &bad);
}

static inline void post_request(struct ibv_sge *sge, enum ibv_wr_opcode opcode,
                                unsigned flags) {
    must(post_to(&qp, sge, opcode, flags) == 0, "ibv_post_send");
}

#define POSTS(name, opcode)                                \
    static void name##_loop(unsigned long times) {         \
        for (unsigned long i = 0; i < times; i++) {        \
            struct ibv_sge sge = buffer();                 \
            post_request(&sge, opcode, IBV_SEND_SIGNALED); \
        }                                                  \
    }
POSTS(write, IBV_WR_RDMA_WRITE)
POSTS(read, IBV_WR_RDMA_READ) // an emulated flush is a read after the writes
POSTS(send, IBV_WR_SEND)

static void atomic_write_loop(unsigned long times) {
    static const char bytes[ATOMIC_BYTES];
    for (unsigned long i = 0; i < times; i++) {
        struct ibv_sge sge = {(uint64_t)(uintptr_t)bytes, ATOMIC_BYTES, 0};
        post_request(&sge, IBV_WR_RDMA_WRITE,
                     IBV_SEND_SIGNALED | IBV_SEND_INLINE | IBV_SEND_FENCE);
    }
}

static void recv_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        struct ibv_sge sge = buffer();
        struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
        must(ibv_post_recv(qp, &wr, &bad) == 0, "ibv_post_recv");
    }
}

#define POLLS(name, polled, found)                                     \
    static void name##_loop(unsigned long times) {                     \
        struct ibv_wc wc;                                              \
        for (unsigned long i = 0; i < times; i++)                      \
            must(ibv_poll_cq(polled, 1, &wc) == found, "ibv_poll_cq"); \
    }
POLLS(poll, cq, 1)
POLLS(poll_empty, empty_cq, 0)

static void refused_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        struct ibv_sge sge = buffer();
        must(post_to(&full_qp, &sge, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED) == ENOMEM,
             "ibv_post_send");
    }
}

static void message_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        recv_loop(1);
        send_loop(1);
        take_event_and_arm(1);
        poll_loop(1);
    }
}

#ifdef PROVIDER_NATIVE
static void native_flush_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        ibv_wr_start(qpx);
        qpx->wr_id = 0;
        qpx->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_flush(qpx, rkey, remote_addr, TRANSFER_BYTES, IBV_FLUSH_PERSISTENT,
                     IBV_FLUSH_RANGE);
        must(ibv_wr_complete(qpx) == 0, "ibv_wr_complete");
    }
}

static void native_atomic_write_loop(unsigned long times) {
    static const char bytes[ATOMIC_BYTES];
    for (unsigned long i = 0; i < times; i++) {
        ibv_wr_start(qpx);
        qpx->wr_id = 0;
        qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE;
        ibv_wr_atomic_write(qpx, rkey, remote_addr, bytes);
        must(ibv_wr_complete(qpx) == 0, "ibv_wr_complete");
    }
}
#endif

const struct loop loops[] = {
    {"write", write_loop},
    {"read", read_loop},
    {"flush", read_loop},
    {"atomic_write", atomic_write_loop},
    {"send", send_loop},
    {"recv", recv_loop},
    {"poll", poll_loop},
    {"poll_empty", poll_empty_loop},
#ifdef PROVIDER_NATIVE
    {"native_flush", native_flush_loop},
    {"native_atomic_write", native_atomic_write_loop},
#endif
    {"only counted", NULL},
    {"wait", take_event_and_arm},
    {"conn_wait", take_event_and_arm},
    {"message", message_loop},
    {"refused_unlogged", refused_loop},
    {0},
};
