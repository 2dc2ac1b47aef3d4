// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// serve.h -- the server's side of a load: echoing and taking messages, and looking at the data

#ifndef RPMA_PERF_SERVE_H
#define RPMA_PERF_SERVE_H 1

#include "crew.h"

struct queues serve_queues(const struct plan *plan);

// Of the request of the next connection.
bool serve_post_receives(struct crew *crew, struct rpma_conn_req *request);

// The thread of a worker; without messages there is nothing for it to do.
void *serve_run(void *worker);

// Before the load, if it is to be verified: the data that reads have to bring, or zeros.
void serve_fill(struct crew *crew);
// After it: whether each connection's operations, counts[] of them, left what they have to.
bool serve_check(struct crew *crew, const uint64_t *counts);

#endif
