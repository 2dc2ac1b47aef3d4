/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* connection.c -- a completion queue for several connections has completions of all of them */

#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define REPLY_TIMEOUT_MS 50
#define BACKOFF_MS 100

static struct ibv_cq *cq;

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for the completion of a write; returns 0 if none arrives in time. */
static int await(const struct connection *connection, struct ibv_wc *wc) {
    const long end = now_ms() + REPLY_TIMEOUT_MS;
    while (now_ms() < end) {
        if (ibv_poll_cq(cq, 1, wc) != 1)
            continue;
#ifdef FIXED
        if (wc->qp_num != connection->id->qp->qp_num)
            continue; /* of an abandoned connection */
#else
        (void)connection;
#endif
        return 1;
    }
    return 0;
}

int main(int argc, char *argv[]) {
    struct connection connections[RECORDS + 1];
    struct record records[RECORDS + 1];
    struct ibv_wc wc;
    unsigned current = 0;
    begin_program(argc == 2, "connection SERVER");

    /* The first connection has the completion queue that all of them use. */
    connect_to(&connections[0], argv[1], NULL);
    cq = connections[0].id->send_cq;
    struct ibv_mr *const mr = rdma_reg_msgs(connections[0].id, records, sizeof(records));
    must(mr != NULL, "rdma_reg_msgs");

    for (unsigned i = 1; i <= RECORDS; i++) {
        snprintf(records[i].text, sizeof(records[i].text), "record %u", i);
        post_record(&connections[current], i, &records[i], mr);
        if (await(&connections[current], &wc) && wc.status == IBV_WC_SUCCESS) {
            printf("stored %u\n", i);
        } else { /* the server does not reply: try a new connection */
            printf("not stored %u\n", i);
            usleep(BACKOFF_MS * 1000);
            connect_to(&connections[++current], argv[1], cq);
        }
    }
    return EXIT_SUCCESS;
}
