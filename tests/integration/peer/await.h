/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* await.h -- blocking waits for the threads of load.c and churn.c */

#ifndef PEER_AWAIT_H
#define PEER_AWAIT_H 1

#include <librpma.h>

/* Waits for one completion of cq: 0, or a code when the wait or the operation failed. */
int await_completion(struct rpma_cq *cq, struct ibv_wc *wc);
/* Waits for the next event: 0 if it is the wanted one. */
int await_event(struct rpma_conn *conn, enum rpma_conn_event wanted);

#endif /* PEER_AWAIT_H */
