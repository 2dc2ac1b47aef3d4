// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// release-0.9.0.c -- a program of release 0.9.0: it owns 24 bytes of struct rpma_completion.

#include <string.h>

#include "life.h"
#include "write_atomic.h"

struct stack {
    struct rpma_completion cmpl;
    unsigned char behind[64]; // the library must not write here
};

static void take(struct rpma_conn *conn, const void *op_context, enum kind kind) {
    static const enum rpma_op ops[] = {
        [READ] = RPMA_OP_READ, [WRITE] = RPMA_OP_WRITE, [FLUSH] = RPMA_OP_READ,
        [SEND] = RPMA_OP_SEND, [RECV] = RPMA_OP_RECV,
    };
    struct stack stack;
    int fd = -1, ret;
    memset(&stack, 0xa5, sizeof(stack));
    MUST(rpma_conn_get_completion_fd(conn, &fd));
    CHECK(fd >= 0);
    do {
        MUST(rpma_conn_completion_wait(conn));
        ret = rpma_conn_completion_get(conn, &stack.cmpl);
    } while (ret == RPMA_E_NO_COMPLETION);
    MUST(ret);
    CHECK(stack.cmpl.op_context == op_context);
    CHECK(stack.cmpl.op_status == IBV_WC_SUCCESS);
    CHECK(stack.cmpl.op == ops[kind] || (kind == FLUSH && stack.cmpl.op == RPMA_OP_FLUSH));
    CHECK(kind != RECV || stack.cmpl.byte_len == sizeof("a message"));
    for (size_t i = 0; i < sizeof(stack.behind); i++)
        CHECK(stack.behind[i] == 0xa5);
    CHECK(rpma_conn_completion_get(conn, &stack.cmpl) == RPMA_E_NO_COMPLETION);
}

static void configure(struct rpma_conn_cfg **cfg) {
    int timeout = 0;
    uint32_t size = 0;
    MUST(rpma_conn_cfg_new(cfg));
    MUST(rpma_conn_cfg_get_timeout(*cfg, &timeout));
    CHECK(timeout == RPMA_DEFAULT_TIMEOUT_MS);
    MUST(rpma_conn_cfg_set_timeout(*cfg, 2000));
    MUST(rpma_conn_cfg_set_cq_size(*cfg, 20));
    MUST(rpma_conn_cfg_set_sq_size(*cfg, 20));
    MUST(rpma_conn_cfg_set_rq_size(*cfg, 20));
    MUST(rpma_conn_cfg_get_sq_size(*cfg, &size));
    CHECK(size == 20);
}

int main(int argc, char *argv[]) {
    struct rpma_conn_cfg *cfg = NULL;
    struct life life;
    configure(&cfg);
    life_open(&life, argc, argv);
    life_connect(&life, cfg, &cfg);
    MUST(rpma_conn_cfg_delete(&cfg));
    life_exchange(&life, take, &cfg);
    life_write_8(&life, write_atomic, take);
    life_close(&life);
    return 0;
}
