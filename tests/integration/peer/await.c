// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// await.c -- blocking waits for the threads of load.c and churn.c

#include "await.h"

#include <stdio.h>

#include "peer.h"

int await_completion(struct rpma_cq *cq, struct ibv_wc *wc) {
    int ret = rpma_cq_get_wc(cq, 1, wc, NULL);
    while (ret == RPMA_E_NO_COMPLETION) {
        ret = rpma_cq_wait(cq);
        if (ret == 0 || ret == RPMA_E_NO_COMPLETION)
            ret = rpma_cq_get_wc(cq, 1, wc, NULL);
    }
    if (ret == 0 && wc->status != IBV_WC_SUCCESS)
        ret = RPMA_E_PROVIDER;
    return ret;
}

int await_event(struct rpma_conn *conn, enum rpma_conn_event wanted) {
    enum rpma_conn_event event = RPMA_CONN_UNDEFINED;
    int ret = rpma_conn_next_event(conn, &event);
    if (ret != 0 || event == wanted)
        return ret;
    fprintf(stderr, "peer: %s instead of %s\n", rpma_utils_conn_event_2str(event),
            rpma_utils_conn_event_2str(wanted));
    return ERR_MISMATCH;
}
