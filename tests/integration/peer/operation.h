/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* operation.h -- what the arguments of a command say about local memory */

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

/* sgl=0:64:8,-:0:0: pieces of memory 0 and of none; at most MAX_ELEMENTS. Returns how many. */
int read_pieces(const struct args *args, struct piece *pieces);

/* The pieces of sgl= as elements of the regions, of which there are at most MAX_ELEMENTS; NULL
 * without sgl=. nsge= says that the list has another length. */
const struct rpma_sge *read_list(const struct args *args, struct rpma_sge *elements,
                                 uint32_t *nsge);

#endif /* PEER_OPERATION_H */
