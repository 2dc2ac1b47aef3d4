// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// verbs_setup.h -- the objects that create_objects() creates for loops over verbs

#ifndef VERBS_SETUP_H
#define VERBS_SETUP_H 1

#include <infiniband/verbs.h>

#include "loops.h"

extern struct ibv_qp *qp;
extern struct ibv_qp *full_qp; // refuses each post
#ifdef PROVIDER_NATIVE
extern struct ibv_qp_ex *qpx; // on a device with native operations
#endif
extern struct ibv_cq *cq, *empty_cq;     // each poll of cq returns a completion
extern struct ibv_comp_channel *channel; // the channel of cq
extern struct ibv_mr *local;
extern uint64_t remote_addr;
extern uint32_t rkey;

static inline struct ibv_sge buffer(void) {
    return (struct ibv_sge){(uint64_t)(uintptr_t)local->addr, TRANSFER_BYTES, local->lkey};
}

void take_event_and_arm(unsigned long times); // takes an event of cq and arms the CQ again

#endif /* VERBS_SETUP_H */
