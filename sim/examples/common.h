/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the rdma-sim developers */

/* common.h -- shared by the programs of rdma-sim-explore(1): records in a region of the server
 */

#ifndef VERBS_COMMON_H
#define VERBS_COMMON_H 1

#include <rdma/rdma_verbs.h>
#include <stdint.h>

#define PORT 7204
#define RECORDS 3

struct record {
    char text[64];
};

struct region { /* the private data of an accepted connection */
    uint64_t address;
    uint32_t rkey;
};

struct connection {
    struct rdma_cm_id *id;
    struct region remote;
};

/* Opens standard descriptors that are closed, lets the program fail at its end if its output
 * cannot be written, and ends it with the usage unless the arguments are right. */
void begin_program(int is_right, const char *usage);

/* Ends the program unless a call has succeeded. */
void must(int is_good, const char *call);

struct sockaddr *address_of(const char *text);

/* Connects to a server. Its sends complete in `cq`, or, if that is NULL, in id->send_cq. */
void connect_to(struct connection *connection, const char *server, struct ibv_cq *cq);

/* Writes a record into its slot on the server; wr_id is the number of the record. */
void post_record(struct connection *connection, unsigned number, struct record *record,
                 struct ibv_mr *mr);

#endif
