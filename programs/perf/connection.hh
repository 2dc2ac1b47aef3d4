// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// connection.hh -- one connection of the client's load: places, data, and posting

#ifndef RPMA_PERF_CONNECTION_HH
#define RPMA_PERF_CONNECTION_HH 1

#include "load_generator.hh"

Queues connection_queues(const Plan &plan);
size_t connection_memory_size(const Plan &plan); // per connection
// Bytes before the memory of the first connection, which the other side may use.
size_t target_before_connections(const Plan &plan);

// Begins to connect.
void start(Connection &connection);
// Advances the connection without blocking.
Link::Step go_on(Connection &connection);
// Posts the receives and makes the batches of an established connection.
void prepare(Connection &connection);

// Posts the next operation, or the next batch.
void post(Connection &connection);
// Posts a flush of all earlier writes.
void post_flush(Connection &connection);
void post_receive(Connection &connection, uint64_t number);

// The oldest operation that fetches, or the oldest reply, must have brought the right data.
void check_fetched(Connection &connection);
void check_reply(Connection &connection);

#endif
