/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* receive.c -- a receive is posted before the other side can send */

#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void serve(void) {
    struct rdma_cm_id *listener, *id;
    struct record record;
    struct ibv_wc wc;
    must(rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
    must(rdma_bind_addr(listener, address_of("0.0.0.0")) == 0, "rdma_bind_addr");
    must(rdma_listen(listener, 1) == 0, "rdma_listen");
    must(rdma_get_request(listener, &id) == 0, "rdma_get_request");
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
    attr.cap = (struct ibv_qp_cap){1, 1, 1, 1, 0};
    must(rdma_create_qp(id, NULL, &attr) == 0, "rdma_create_qp");
    struct ibv_mr *const mr = rdma_reg_msgs(id, &record, sizeof(record));
    must(mr != NULL, "rdma_reg_msgs");

    struct rdma_conn_param param = {.rnr_retry_count = 0};
#ifdef FIXED
    must(rdma_post_recv(id, NULL, &record, sizeof(record), mr) == 0, "rdma_post_recv");
    must(rdma_accept(id, &param) == 0, "rdma_accept");
#else
    must(rdma_accept(id, &param) == 0, "rdma_accept");
    must(rdma_post_recv(id, NULL, &record, sizeof(record), mr) == 0, "rdma_post_recv");
#endif
    must(rdma_get_recv_comp(id, &wc) == 1, "rdma_get_recv_comp");
    printf("received: %s\n", wc.status == IBV_WC_SUCCESS ? record.text : "nothing");
}

static void send_record(const char *server) {
    struct connection connection;
    struct record record = {"record 1"};
    struct ibv_wc wc;
    connect_to(&connection, server, NULL);
    struct ibv_mr *const mr = rdma_reg_msgs(connection.id, &record, sizeof(record));
    must(mr != NULL, "rdma_reg_msgs");
    must(rdma_post_send(connection.id, NULL, &record, sizeof(record), mr, IBV_SEND_SIGNALED) ==
             0,
         "rdma_post_send");
    must(rdma_get_send_comp(connection.id, &wc) == 1, "rdma_get_send_comp");
    if (wc.status != IBV_WC_SUCCESS) {
        fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
        exit(EXIT_FAILURE);
    }
    printf("sent 1\n");
    rdma_disconnect(connection.id);
}

int main(int argc, char *argv[]) {
    begin_program(argc <= 2, "receive [SERVER]");
    if (argc == 2)
        send_record(argv[1]);
    else
        serve();
    return EXIT_SUCCESS;
}
