/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* server.c -- FILE is the region that clients write their records to */

#include "common.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char *argv[]) {
    const size_t size = RECORDS * sizeof(struct record);
    begin_program(argc == 2, "server FILE");
    const int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
    must(fd >= 0 && posix_fallocate(fd, 0, (off_t)size) == 0, argv[1]); /* never shorter */
    void *const file = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(file != MAP_FAILED, "mmap");

    struct rdma_event_channel *const channel = rdma_create_event_channel();
    struct rdma_cm_id *listener;
    must(channel != NULL, "rdma_create_event_channel");
    must(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
    must(rdma_bind_addr(listener, address_of("0.0.0.0")) == 0, "rdma_bind_addr");
    must(rdma_listen(listener, 8) == 0, "rdma_listen");

    for (;;) {
        struct rdma_cm_event *event;
        must(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
        struct rdma_cm_id *const id = event->id;
        const enum rdma_cm_event_type type = event->event;
        must(rdma_ack_cm_event(event) == 0, "rdma_ack_cm_event");

        if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
            struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
            attr.cap = (struct ibv_qp_cap){1, 1, 1, 1, 0};
            must(rdma_create_qp(id, NULL, &attr) == 0, "rdma_create_qp");
            /* librdmacm deletes id->pd with the last connection. */
            struct ibv_mr *const mr = ibv_reg_mr(
                id->pd, file, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
            must(mr != NULL, "ibv_reg_mr");
            id->context = mr;
            const struct region region = {(uintptr_t)file, mr->rkey};
            struct rdma_conn_param param = {.private_data = &region,
                                            .private_data_len = sizeof(region)};
            must(rdma_accept(id, &param) == 0, "rdma_accept");
        } else if (type == RDMA_CM_EVENT_DISCONNECTED) {
            rdma_disconnect(id);
            rdma_destroy_qp(id);
            must(ibv_dereg_mr(id->context) == 0, "ibv_dereg_mr");
            rdma_destroy_id(id);
        }
    }
}
