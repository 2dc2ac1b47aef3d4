// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rpma.c -- the loops as a user of librpma writes them; runs on any librpma.so.0

#include "loops.h"
#include "rpma_side.h"

enum { MANY_CONNECTIONS = 10000 };

void adapt_side(struct rpma_conn_cfg *cfg) {
    (void)cfg;
}

static void write_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_write(conn, remote, 0, local, 0, TRANSFER_BYTES, RPMA_F_COMPLETION_ALWAYS,
                        NULL) == 0,
             "rpma_write");
}

static void read_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_read(conn, local, 0, remote, 0, TRANSFER_BYTES, RPMA_F_COMPLETION_ALWAYS,
                       NULL) == 0,
             "rpma_read");
}

// The connection is read from a variable, as in all loops, so that the caller's share of a
// count stays comparable.
static inline void flushes(struct rpma_conn **through, unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_flush(*through, remote, 0, TRANSFER_BYTES, RPMA_FLUSH_TYPE_PERSISTENT,
                        RPMA_F_COMPLETION_ALWAYS, NULL) == 0,
             "rpma_flush");
}

static void flush_loop(unsigned long times) {
    flushes(&conn, times);
}

static inline void atomic_writes(struct rpma_conn **through, unsigned long times) {
    static const char bytes[ATOMIC_BYTES];
    for (unsigned long i = 0; i < times; i++)
        must(rpma_atomic_write(*through, remote, 0, bytes, RPMA_F_COMPLETION_ALWAYS, NULL) == 0,
             "rpma_atomic_write");
}

static void atomic_write_loop(unsigned long times) {
    atomic_writes(&conn, times);
}

static void send_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_send(conn, local, 0, TRANSFER_BYTES, RPMA_F_COMPLETION_ALWAYS, NULL) == 0,
             "rpma_send");
}

static void recv_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_recv(conn, local, 0, TRANSFER_BYTES, NULL) == 0, "rpma_recv");
}

static void poll_loop(unsigned long times) {
    struct ibv_wc wc;
    for (unsigned long i = 0; i < times; i++)
        must(rpma_cq_get_wc(cq, 1, &wc, NULL) == 0, "rpma_cq_get_wc");
}

static void poll_empty_loop(unsigned long times) {
    struct ibv_wc wc;
    for (unsigned long i = 0; i < times; i++)
        must(rpma_cq_get_wc(empty_cq, 1, &wc, NULL) == RPMA_E_NO_COMPLETION, "rpma_cq_get_wc");
}

static void wait_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_cq_wait(cq) == 0, "rpma_cq_wait");
}

static void conn_wait_loop(unsigned long times) {
    struct rpma_cq *ready;
    for (unsigned long i = 0; i < times; i++)
        must(rpma_conn_wait(shared_conn, 0, &ready, NULL) == 0, "rpma_conn_wait");
}

static void refused_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++)
        must(rpma_write(full_conn, remote, 0, local, 0, TRANSFER_BYTES,
                        RPMA_F_COMPLETION_ALWAYS, NULL) == RPMA_E_PROVIDER,
             "rpma_write");
}

static void refused_unlogged_loop(unsigned long times) {
    log_refusals(false);
    refused_loop(times);
    log_refusals(true);
}

// Makes, establishes and deletes a connection.
static void setup_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        struct rpma_conn *made = connect_one();
        must(rpma_conn_delete(&made) == 0, "rpma_conn_delete");
    }
}

static void setup_beside_many_loop(unsigned long times) {
    static unsigned held;
    for (; held < MANY_CONNECTIONS; held++)
        connect_one();
    setup_loop(times);
}

#ifdef PROVIDER_NATIVE
static void native_flush_loop(unsigned long times) {
    flushes(&native_conn, times);
}

static void native_atomic_write_loop(unsigned long times) {
    atomic_writes(&native_conn, times);
}
#endif

const struct loop loops[] = {
    {"write", write_loop},
    {"read", read_loop},
    {"flush", flush_loop},
    {"atomic_write", atomic_write_loop},
    {"send", send_loop},
    {"recv", recv_loop},
    {"poll", poll_loop},
    {"poll_empty", poll_empty_loop},
#ifdef PROVIDER_NATIVE
    {"native_flush", native_flush_loop},
    {"native_atomic_write", native_atomic_write_loop},
#endif
    {0},
};

const struct loop counted_only[] = {
    {"wait", wait_loop},
    {"conn_wait", conn_wait_loop},
    {"refused", refused_loop},
    {"refused_unlogged", refused_unlogged_loop},
    {"setup", setup_loop},
    {"setup_beside_10000", setup_beside_many_loop},
    {0},
};
