// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// defaults.c -- the default settings of connections and shared receive queues

#include <stdio.h>
#include <stdlib.h>

#include "info.h"

static void check(int ret, const char *call) {
    if (ret == 0)
        return;
    speak();
    (void)fprintf(stderr, "rpma-info: %s: %s\n", call, rpma_err_2str(ret));
    exit(STATUS_FAILED);
}

static void add_connection_defaults(tree *connection, const struct rpma_conn_cfg *cfg) {
    static const struct {
        const char *key;
        int (*get)(const struct rpma_conn_cfg *, uint32_t *);
    } settings[] = {
        {"cq_size", rpma_conn_cfg_get_cq_size},
        {"rcq_size", rpma_conn_cfg_get_rcq_size},
        {"sq_size", rpma_conn_cfg_get_sq_size},
        {"rq_size", rpma_conn_cfg_get_rq_size},
        {"max_sge", rpma_conn_cfg_get_max_sge},
        {"inline_size", rpma_conn_cfg_get_inline_size},
        {"retry_count", rpma_conn_cfg_get_retry_count},
        {"rnr_retry_count", rpma_conn_cfg_get_rnr_retry_count},
    };
    int milliseconds = 0;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        uint32_t value = 0;
        check(settings[i].get(cfg, &value), settings[i].key);
        add_number(connection, settings[i].key, value);
    }
    check(rpma_conn_cfg_get_timeout(cfg, &milliseconds), "rpma_conn_cfg_get_timeout");
    add_number(connection, "timeout_ms", (uint64_t)milliseconds);
    check(rpma_conn_cfg_get_ack_timeout(cfg, &milliseconds), "rpma_conn_cfg_get_ack_timeout");
    add_number(connection, "ack_timeout_ms", (uint64_t)milliseconds);
}

static void add_queue_defaults(tree *queue, const struct rpma_srq_cfg *cfg) {
    static const struct {
        const char *key;
        int (*get)(const struct rpma_srq_cfg *, uint32_t *);
    } settings[] = {
        {"rq_size", rpma_srq_cfg_get_rq_size},
        {"rcq_size", rpma_srq_cfg_get_rcq_size},
        {"max_sge", rpma_srq_cfg_get_max_sge},
    };
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        uint32_t value = 0;
        check(settings[i].get(cfg, &value), settings[i].key);
        add_number(queue, settings[i].key, value);
    }
}

void add_defaults(tree *report) {
    tree *defaults = add_object(report, "defaults");
    struct rpma_conn_cfg *connection = NULL;
    struct rpma_srq_cfg *queue = NULL;
    check(rpma_conn_cfg_new(&connection), "rpma_conn_cfg_new");
    add_connection_defaults(add_object(defaults, "connection"), connection);
    (void)rpma_conn_cfg_delete(&connection);
    check(rpma_srq_cfg_new(&queue), "rpma_srq_cfg_new");
    add_queue_defaults(add_object(defaults, "shared_receive_queue"), queue);
    (void)rpma_srq_cfg_delete(&queue);
}
