// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// rpma_setup.h -- the objects that create_objects() creates for loops over librpma

#ifndef RPMA_SETUP_H
#define RPMA_SETUP_H 1

#include <librpma.h>

#ifdef __cplusplus
extern "C" {
#endif

extern struct rpma_conn *conn;
#ifdef PROVIDER_NATIVE
extern struct rpma_conn *native_conn; // on a device with native operations
#endif
extern struct rpma_conn *full_conn;   // its send queue is full
extern struct rpma_conn *shared_conn; // with a shared completion channel
extern struct rpma_cq *cq, *empty_cq; // each poll of cq returns a completion
extern struct rpma_peer *peer;
extern struct rpma_mr_local *local;
extern struct rpma_mr_remote *remote;

// Defined by each program: adds the settings that its connections need.
void add_settings(struct rpma_conn_cfg *cfg);

// Returns an established connection with the default settings.
struct rpma_conn *connect_one(void);

// Switches the log off, or back to its default level.
static inline void log_refusals(bool is_on) {
    rpma_log_set_threshold(RPMA_LOG_THRESHOLD,
                           is_on ? RPMA_LOG_LEVEL_WARNING : RPMA_LOG_DISABLED);
}

#ifdef __cplusplus
}
#endif

#endif /* RPMA_SETUP_H */
