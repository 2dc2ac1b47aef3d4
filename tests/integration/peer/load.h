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
#define BACK REMOTE          /* what is read back */
#define SEND_AT (2 * REMOTE) /* a message */
#define RECV_AT (SEND_AT + MESSAGE)
#define MESSAGE 1024
/* Where the echo receives its messages, by turns. */
#define ECHO_AT(round) (REMOTE + (round) % 2 * MESSAGE)

struct worker {
    pthread_t thread;
    struct rpma_conn *conn;
    struct rpma_cq *cq;
    struct rpma_mr_local *mr;
    struct rpma_mr_remote *remote;
    size_t share; /* where its share of the remote region begins */
    char *base;
    int64_t deadline;
    unsigned random;
    bool without_imm; /* the device has no immediate data */
    int without;      /* which it leaves out: a bit for each of any_operation()'s steps */
    int tried;        /* which it has done, likewise */
    uint64_t rounds;
    uint64_t seed;
    const char *failed_in;
    enum ibv_wc_status status; /* of the last completion */
    int ret;
};

/* Writes, flushes and reads back. */
int write_pattern(struct worker *w, size_t roff, size_t len, uint64_t seed);
/* The message, or the immediate data, comes back from the other side's echo. */
int exchange(struct worker *w);
/* One operation at random; counts it, or says which failed. */
int any_operation(struct worker *w);
/* Waits for a completion; when the other side is gone meanwhile, the connection is
 * disconnected, and the answer says so. RPMA_E_PROVIDER: the operation failed. ERR_CLOSED: the
 * event came, and is the last that is waited for. */
int await_either(struct rpma_conn *conn, struct rpma_cq *cq, struct ibv_wc *wc,
                 bool event_is_last);

#endif /* PEER_LOAD_H */
