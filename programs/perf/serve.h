// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// serve.h -- the server's side of a load: receives and echoes messages, and checks the data

#ifndef RPMA_PERF_SERVE_H
#define RPMA_PERF_SERVE_H 1

#include "crew.h"

struct queues serve_queues(const struct plan *plan);

// Posts receives to the request of the next connection.
bool serve_post_receives(struct crew *crew, struct rpma_conn_req *request);

// The thread of a worker; only loads of messages need it.
void *serve_run(void *worker);

// Before a verified load: writes the data that reads must return, or zeros.
void serve_fill(struct crew *crew);
// After a verified load of counts[] operations per connection: whether the data is right.
bool serve_check(struct crew *crew, const uint64_t *counts);

#endif
