/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* operation.h -- what the arguments of a command say about an operation */

#ifndef PEER_OPERATION_H
#define PEER_OPERATION_H 1

#include "peer.h"

#define MAX_ELEMENTS 128

/* What most operations take; a region that is not named is NULL. */
struct operation {
    struct rpma_batch *batch; /* with batch=: the operation is added to it, not posted */
    struct rpma_conn *conn;
    struct rpma_mr_local *local;
    struct rpma_mr_remote *remote;
    size_t offset;
    size_t remote_offset;
    size_t len;
    int flags;
    uint32_t imm;
    const void *context;
};

struct operation read_operation(const struct args *args);

/* A piece of the memory of a side. */
struct piece {
    size_t memory;
    size_t offset;
    size_t len;
};

/* sgl=0:64:8,-:0:0: pieces of memory 0 and of none; at most MAX_ELEMENTS. Returns how many. */
int read_pieces(const struct args *args, struct piece *pieces);

/* A memory list of the regions over these pieces; without sgl= it is NULL and 0. nsge= says
 * that the list has another length. The elements are overwritten by the next command. */
struct list {
    const struct rpma_sge *sgl;
    int nsge;
};

struct list read_list(const struct args *args);

#endif /* PEER_OPERATION_H */
