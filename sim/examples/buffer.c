/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* buffer.c -- until an operation has completed, its memory belongs to the device */

#include "common.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef FIXED
#define BUFFERS RECORDS
#else
#define BUFFERS 1
#endif

int main(int argc, char *argv[]) {
    struct connection connection;
    struct record buffers[BUFFERS];
    struct ibv_wc wc;
    begin_program(argc == 2, "buffer SERVER");
    connect_to(&connection, argv[1], NULL);
    struct ibv_mr *const mr = rdma_reg_msgs(connection.id, buffers, sizeof(buffers));
    must(mr != NULL, "rdma_reg_msgs");

    for (unsigned i = 1; i <= RECORDS; i++) {
        struct record *const record = &buffers[i % BUFFERS];
        snprintf(record->text, sizeof(record->text), "record %u", i);
        post_record(&connection, i, record, mr);
    }
    for (unsigned i = 1; i <= RECORDS; i++) {
        must(rdma_get_send_comp(connection.id, &wc) == 1, "rdma_get_send_comp");
        if (wc.status != IBV_WC_SUCCESS) {
            fprintf(stderr, "not stored %u: %s\n", i, ibv_wc_status_str(wc.status));
            return EXIT_FAILURE;
        }
        printf("stored %u\n", i);
    }
    rdma_disconnect(connection.id);
    return EXIT_SUCCESS;
}
