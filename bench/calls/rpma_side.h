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
extern struct rpma_conn *full_conn;   // each post to its send queue is refused
extern struct rpma_conn *shared_conn; // with a shared completion channel
extern struct rpma_cq *cq, *empty_cq; // each poll of cq yields a completion
extern struct rpma_peer *peer;
extern struct rpma_mr_local *local;
extern struct rpma_mr_remote *remote;

// Given by the loops: what their connections need besides.
void adapt_side(struct rpma_conn_cfg *cfg);

// A connection with the defaults, which is established.
struct rpma_conn *connect_one(void);

// Switches the log off, or back to its default level.
static inline void log_refusals(bool wanted) {
    rpma_log_set_threshold(RPMA_LOG_THRESHOLD,
                           wanted ? RPMA_LOG_LEVEL_WARNING : RPMA_LOG_DISABLED);
}

#endif /* RPMA_SIDE_H */
