// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// link.h -- a connection: how it comes up, and how its end is noticed

#ifndef RPMA_PERF_LINK_H
#define RPMA_PERF_LINK_H 1

#include <librpma.h>

#define PROTOCOL 1 // what the two sides say to each other; another number is not understood

struct link {
    struct rpma_conn *conn;
    int fd; // of its events
    bool has_ended;
};

// With limits for retries, so that a lost peer is noticed where the device can. NULL: fails.
struct rpma_conn_cfg *link_cfg(void);

// Connects or accepts and waits until the connection is up; the request is gone in any case.
// kind, session, number: go to the other side as private data.
bool link_open(struct link *link, struct rpma_conn_req **request, const char *kind,
               uint64_t session, uint64_t number);
void link_close(struct link *link);

// Takes the events that wait. False: the connection is over.
bool link_is_up(struct link *link);

// What the other side sent with the connection: another protocol, or no rpma-perf, is told.
struct greeting {
    bool is_ours; // an rpma-perf
    unsigned protocol;
    char kind[16];
    unsigned long session, number;
};
struct greeting greeting_of(const struct rpma_conn_private_data *data);

#endif
