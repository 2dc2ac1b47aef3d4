/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* status.c -- a completion reports the end of an operation, not its success */

#include "common.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char *argv[]) {
    struct connection connection;
    struct record record;
    struct ibv_wc wc;
    begin_program(argc == 2, "status SERVER");
    connect_to(&connection, argv[1], NULL);
    struct ibv_mr *const mr = rdma_reg_msgs(connection.id, &record, sizeof(record));
    must(mr != NULL, "rdma_reg_msgs");

    for (unsigned i = 1; i <= RECORDS; i++) {
        snprintf(record.text, sizeof(record.text), "record %u", i);
        post_record(&connection, i, &record, mr);
        must(rdma_get_send_comp(connection.id, &wc) == 1, "rdma_get_send_comp");
#ifdef FIXED
        if (wc.status != IBV_WC_SUCCESS) {
            fprintf(stderr, "not stored %u: %s\n", i, ibv_wc_status_str(wc.status));
            return EXIT_FAILURE;
        }
#endif
        printf("stored %u\n", i);
    }
    rdma_disconnect(connection.id);
    return EXIT_SUCCESS;
}
