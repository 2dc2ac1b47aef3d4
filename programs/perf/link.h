// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// link.h -- a connection: how it is established, and how its end is noticed

#ifndef RPMA_PERF_LINK_H
#define RPMA_PERF_LINK_H 1

#include <librpma.h>

#define PROTOCOL 1 // version of the messages; the two sides must have the same

struct link {
    struct rpma_conn *conn;
    int fd; // for its events
    bool has_ended;
};

// A configuration with limits for retries, so that devices that support them notice a lost
// peer. Returns NULL on failure.
struct rpma_conn_cfg *link_cfg(void);

// Connects or accepts and waits until the connection is established. Consumes the request in
// any case. kind, session and number go to the other side as private data.
bool link_open(struct link *link, struct rpma_conn_req **request, const char *kind,
               uint64_t session, uint64_t number);
void link_close(struct link *link);

// Takes the pending events. Returns false if the connection has ended.
bool link_is_up(struct link *link);

// The private data of the other side; it may speak another protocol, or be no rpma-perf at all.
struct greeting {
    bool is_ours; // the other side is an rpma-perf
    unsigned protocol;
    char kind[16];
    unsigned long session, number;
};
struct greeting greeting_of(const struct rpma_conn_private_data *data);

#endif
