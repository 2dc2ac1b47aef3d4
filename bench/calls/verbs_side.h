// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// verbs_side.h -- the objects that connect_side() creates for loops over verbs

#ifndef VERBS_SIDE_H
#define VERBS_SIDE_H 1

#include <infiniband/verbs.h>

#include "loops.h"

extern struct ibv_qp *qp;
extern struct ibv_qp *full_qp; // refuses each post
#ifdef PROVIDER_NATIVE
extern struct ibv_qp_ex *qpx; // on a device with native operations
#endif
extern struct ibv_cq *cq, *empty_cq;     // each poll of cq yields a completion
extern struct ibv_comp_channel *channel; // of cq
extern struct ibv_mr *local;
extern uint64_t remote_addr;
extern uint32_t rkey;

static inline struct ibv_sge buffer(void) {
    return (struct ibv_sge){(uint64_t)(uintptr_t)local->addr, TRANSFER_BYTES, local->lkey};
}

void halves_of_wait(unsigned long times); // takes an event of cq and asks for the next one

#endif /* VERBS_SIDE_H */
