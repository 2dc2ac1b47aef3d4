// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rpma_side.h -- what connect_side() makes for loops over librpma

#ifndef RPMA_SIDE_H
#define RPMA_SIDE_H 1

#include <librpma.h>

extern struct rpma_conn *conn;
#ifdef PROVIDER_NATIVE
extern struct rpma_conn *native_conn; // on a device with native operations
#endif
extern struct rpma_cq *cq, *empty_cq; // each poll of cq yields a completion
extern struct rpma_mr_local *local;
extern struct rpma_mr_remote *remote;

#endif /* RPMA_SIDE_H */
