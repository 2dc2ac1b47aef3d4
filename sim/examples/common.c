/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* common.c -- see common.h */

#include "common.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Runs at exit: a program whose output was lost fails. */
static void check_output(void) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    fputs("the standard output cannot be written\n", stderr);
    _exit(EXIT_FAILURE);
}

void begin_program(int is_right, const char *usage) {
    /* Otherwise a device gets the number of a standard descriptor that was closed, and the
     * output of the program goes to the device. */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            exit(EXIT_FAILURE);
    atexit(check_output);
    if (!is_right) {
        fprintf(stderr, "usage: %s\n", usage);
        exit(2);
    }
}

void must(int is_good, const char *call) {
    if (!is_good) {
        perror(call);
        exit(EXIT_FAILURE);
    }
}

struct sockaddr *address_of(const char *text) {
    static struct sockaddr_in address;
    address.sin_family = AF_INET;
    address.sin_port = htons(PORT);
    must(inet_pton(AF_INET, text, &address.sin_addr) == 1, "inet_pton");
    return (struct sockaddr *)&address;
}

void connect_to(struct connection *connection, const char *server, struct ibv_cq *cq) {
    struct rdma_cm_id *id;
    must(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");
    must(rdma_resolve_addr(id, NULL, address_of(server), 2000) == 0, "rdma_resolve_addr");
    must(rdma_resolve_route(id, 2000) == 0, "rdma_resolve_route");

    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq};
    attr.cap = (struct ibv_qp_cap){8, 8, 1, 1, 0};
    must(rdma_create_qp(id, NULL, &attr) == 0, "rdma_create_qp");

    struct rdma_conn_param param = {.retry_count = 3};
    must(rdma_connect(id, &param) == 0, "rdma_connect");
    connection->id = id;
    if (id->event->param.conn.private_data_len >= sizeof(connection->remote))
        memcpy(&connection->remote, id->event->param.conn.private_data,
               sizeof(connection->remote));
}

void post_record(struct connection *connection, unsigned number, struct record *record,
                 struct ibv_mr *mr) {
    const uint64_t slot = connection->remote.address + (number - 1) * sizeof(*record);
    must(rdma_post_write(connection->id, (void *)(uintptr_t)number, record, sizeof(*record), mr,
                         IBV_SEND_SIGNALED, slot, connection->remote.rkey) == 0,
         "rdma_post_write");
}
