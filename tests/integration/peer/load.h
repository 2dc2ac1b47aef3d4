/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* load.h -- operations whose data are checked, for commands that do many at once */

#ifndef PEER_LOAD_H
#define PEER_LOAD_H 1

#include <librpma.h>
#include <pthread.h>
#include <stdbool.h>

/* The layout of a worker's local region; its share of the remote region is REMOTE bytes. */
#define REMOTE 8192
#define BACK REMOTE          /* data that are read back */
#define SEND_AT (2 * REMOTE) /* a message */
#define RECV_AT (SEND_AT + MESSAGE)
#define MESSAGE 1024
/* The echo's two places for messages, by turns. */
#define ECHO_AT(round) (REMOTE + (round) % 2 * MESSAGE)

struct worker {
    pthread_t thread;
    struct rpma_conn *conn;
    struct rpma_cq *cq;
    struct rpma_mr_local *mr;
    struct rpma_mr_remote *remote;
    size_t share; /* offset of its share of the remote region */
    char *base;
    int64_t deadline;
    unsigned random;
    bool without_imm; /* the device has no immediate data */
    int without;      /* steps of any_operation() that it leaves out: a bit each */
    int tried;        /* steps that it has done, likewise */
    uint64_t rounds;
    uint64_t seed;
    const char *failed_in;
    enum ibv_wc_status status; /* of the last completion */
    int ret;
};

/* Writes, flushes and reads back. */
int write_pattern(struct worker *w, size_t roff, size_t len, uint64_t seed);
/* The other side's echo returns the message, or the immediate data. */
int exchange(struct worker *w);
/* Performs a random operation; counts it, or names the one that failed. */
int any_operation(struct worker *w);
/* Waits for a completion; if the other side leaves meanwhile, disconnects, and the answer says
 * so. RPMA_E_PROVIDER: the operation failed. ERR_CLOSED: the event came, and the caller waits
 * for nothing more. */
int await_either(struct rpma_conn *conn, struct rpma_cq *cq, struct ibv_wc *wc,
                 bool event_is_last);

#endif /* PEER_LOAD_H */
