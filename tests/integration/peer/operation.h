/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* operation.h -- local memory in the arguments of a command */

#ifndef PEER_OPERATION_H
#define PEER_OPERATION_H 1

#include "peer.h"

#define MAX_ELEMENTS 128

/* A piece of the memory of a side. */
struct piece {
    size_t memory;
    size_t offset;
    size_t len;
};

/* sgl=0:64:8,-:0:0: pieces of memory 0 and of no memory. Returns how many, at most
 * MAX_ELEMENTS. */
int read_pieces(const struct args *args, struct piece *pieces);

/* The pieces of sgl= as elements of regions, at most MAX_ELEMENTS; NULL without sgl=. nsge=
 * gives the list another length. */
const struct rpma_sge *read_list(const struct args *args, struct rpma_sge *elements,
                                 uint32_t *nsge);

#endif /* PEER_OPERATION_H */
