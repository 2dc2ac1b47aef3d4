// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// completion.c -- waiting for completions

#include "common.h"

bool poll_completion(struct rpma_cq *cq, struct ibv_wc *wc) {
    int ret = rpma_cq_get_wc(cq, 1, wc, NULL);
    if (ret == RPMA_E_NO_COMPLETION)
        return false;
    check_call(ret, "rpma_cq_get_wc");
    if (wc->status != IBV_WC_SUCCESS)
        fail("an operation failed: %s%s", ibv_wc_status_str(wc->status),
             wc->status == IBV_WC_WR_FLUSH_ERR ? ": the other side has ended the connection"
                                               : "");
    return true;
}

// A wait may end without a completion, so the caller always polls again.
static void check_wait(int ret) {
    if (ret != RPMA_E_NO_COMPLETION)
        check_call(ret, "waiting for a completion");
}

struct ibv_wc await_completion(struct rpma_cq *cq) {
    struct ibv_wc wc;
    int fd;
    CALL(rpma_cq_get_fd(cq, &fd));
    while (!poll_completion(cq, &wc)) {
        await_readable(fd);
        check_wait(rpma_cq_wait(cq));
    }
    return wc;
}

struct completions completions_of(struct rpma_conn *conn, struct rpma_srq *srq,
                                  bool shared_channel) {
    struct completions completions = {.conn = conn, .shared_channel = shared_channel};
    struct rpma_cq *rcq = NULL;
    CALL(rpma_conn_get_cq(conn, &completions.cq[OPERATION]));
    if (srq)
        CALL(rpma_srq_get_rcq(srq, &rcq));
    if (!rcq)
        CALL(rpma_conn_get_rcq(conn, &rcq));
    completions.cq[RECEIVE] = rcq ? rcq : completions.cq[OPERATION];
    return completions;
}

static struct ibv_wc await_kind(struct completions *completions, enum completion_kind wanted) {
    while (!completions->waiting[wanted]) {
        struct rpma_cq *cq = completions->cq[wanted];
        struct ibv_wc wc;
        int fd;
        if (poll_completion(cq, &wc)) {
            enum completion_kind kind = wc.opcode & IBV_WC_RECV ? RECEIVE : OPERATION;
            if (completions->waiting[kind])
                fail("a second unexpected completion");
            completions->wc[kind] = wc;
            completions->waiting[kind] = true;
        } else if (completions->shared_channel) {
            // cq may be either CQ: the loop polls the wanted one again.
            CALL(rpma_conn_get_compl_fd(completions->conn, &fd));
            await_readable(fd);
            check_wait(rpma_conn_wait(completions->conn, 0, &cq, NULL));
        } else {
            CALL(rpma_cq_get_fd(cq, &fd));
            await_readable(fd);
            check_wait(rpma_cq_wait(cq));
        }
    }
    completions->waiting[wanted] = false;
    return completions->wc[wanted];
}

struct ibv_wc await_operation(struct completions *completions) {
    return await_kind(completions, OPERATION);
}

struct ibv_wc await_receive(struct completions *completions) {
    return await_kind(completions, RECEIVE);
}
