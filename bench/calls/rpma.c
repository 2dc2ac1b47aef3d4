// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rpma.c -- the loops over the functions of librpma; runs with any librpma.so.0

#include "loops.h"
#include "rpma_setup.h"

enum { MANY_CONNECTIONS = 10000 };

void add_settings(struct rpma_conn_cfg *cfg) {
    (void)cfg;
}

#define LOOP(name, variable, ...)                  \
    static void name##_loop(unsigned long times) { \
        variable;                                  \
        for (unsigned long i = 0; i < times; i++)  \
            must(__VA_ARGS__, #__VA_ARGS__);       \
    }
#define FLUSH(name, through)                                                        \
    LOOP(name, ,                                                                    \
         rpma_flush(through, remote, 0, TRANSFER_BYTES, RPMA_FLUSH_TYPE_PERSISTENT, \
                    RPMA_F_COMPLETION_ALWAYS, NULL) == 0)
#define ATOMIC_WRITE(name, through)                   \
    LOOP(name, static const char bytes[ATOMIC_BYTES], \
         rpma_atomic_write(through, remote, 0, bytes, RPMA_F_COMPLETION_ALWAYS, NULL) == 0)

// clang-format off
LOOP(write, , rpma_write(conn, remote, 0, local, 0, TRANSFER_BYTES, RPMA_F_COMPLETION_ALWAYS, NULL) == 0)
LOOP(read, , rpma_read(conn, local, 0, remote, 0, TRANSFER_BYTES, RPMA_F_COMPLETION_ALWAYS, NULL) == 0)
FLUSH(flush, conn)
ATOMIC_WRITE(atomic_write, conn)
LOOP(send, , rpma_send(conn, local, 0, TRANSFER_BYTES, RPMA_F_COMPLETION_ALWAYS, NULL) == 0)
LOOP(recv, , rpma_recv(conn, local, 0, TRANSFER_BYTES, NULL) == 0)
LOOP(poll, struct ibv_wc wc, rpma_cq_get_wc(cq, 1, &wc, NULL) == 0)
LOOP(poll_empty, struct ibv_wc wc, rpma_cq_get_wc(empty_cq, 1, &wc, NULL) == RPMA_E_NO_COMPLETION)
LOOP(wait, , rpma_cq_wait(cq) == 0)
LOOP(conn_wait, struct rpma_cq *ready, rpma_conn_wait(shared_conn, 0, &ready, NULL) == 0)
LOOP(refused, , rpma_write(full_conn, remote, 0, local, 0, TRANSFER_BYTES, RPMA_F_COMPLETION_ALWAYS, NULL)
     == RPMA_E_PROVIDER)
#ifdef PROVIDER_NATIVE
FLUSH(native_flush, native_conn)
ATOMIC_WRITE(native_atomic_write, native_conn)
#endif
// clang-format on

// The calls of one side for a message and its echo.
static void message_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        recv_loop(1);
        send_loop(1);
        wait_loop(1);
        poll_loop(1);
    }
}

static void refused_unlogged_loop(unsigned long times) {
    log_refusals(false);
    refused_loop(times);
    log_refusals(true);
}

// Creates, establishes and deletes a connection.
static void setup_loop(unsigned long times) {
    for (unsigned long i = 0; i < times; i++) {
        struct rpma_conn *new_conn = connect_one();
        must(rpma_conn_delete(&new_conn) == 0, "rpma_conn_delete");
    }
}

static void setup_with_many_loop(unsigned long times) {
    static unsigned existing;
    for (; existing < MANY_CONNECTIONS; existing++)
        connect_one();
    setup_loop(times);
}

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
    {"only counted", NULL},
    {"wait", wait_loop},
    {"conn_wait", conn_wait_loop},
    {"message", message_loop},
    {"refused", refused_loop},
    {"refused_unlogged", refused_unlogged_loop},
    {"setup", setup_loop},
    {"setup_with_10000", setup_with_many_loop},
    {0},
};
