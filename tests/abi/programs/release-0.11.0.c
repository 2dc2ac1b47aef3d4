// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// release-0.11.0.c -- a program of release 0.11.0: both ways of taking completions from a CQ.

#include <string.h>

#include "completion.h"
#include "wc.h"
#include "write_atomic.h"

static void take(struct rpma_conn *conn, const void *op_context, enum kind kind) {
    struct rpma_completion cmpl;
    struct rpma_cq *cq = NULL;
    int ret;
    memset(&cmpl, 0xa5, sizeof(cmpl));
    MUST(rpma_conn_get_cq(conn, &cq));
    do {
        MUST(rpma_cq_wait(cq));
        ret = rpma_cq_get_completion(cq, &cmpl);
    } while (ret == RPMA_E_NO_COMPLETION);
    MUST(ret);
    expect_completion(&cmpl, op_context, kind);
}

int main(int argc, char *argv[]) {
    struct life life;
    life_open(&life, argc, argv);
    life_connect(&life, NULL, &life);
    life_exchange(&life, take, &life);
    life_write_8(&life, write_atomic, take_wc);
    write_with_imm(&life, take);
    write_with_imm(&life, take_wc);
    life_close(&life);
    return 0;
}
