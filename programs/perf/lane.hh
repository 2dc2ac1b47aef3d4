// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lane.hh -- one connection of the client's load: places, data, and posting

#ifndef RPMA_PERF_LANE_HH
#define RPMA_PERF_LANE_HH 1

#include "crew.hh"

Queues lane_queues(const Plan &plan);
size_t lane_memory_size(const Plan &plan); // per connection
// Bytes before the memory of the first lane, which the other side may use.
size_t target_before_lanes(const Plan &plan);

// Begins to connect.
void start(Lane &lane);
// Goes on with it as far as it goes without waiting.
Link::Step go_on(Lane &lane);
// Posts the receives and makes the batches of an established connection.
void prepare(Lane &lane);

// Posts the next operation, or the next batch.
void post(Lane &lane);
// Posts a flush of all earlier writes.
void post_flush(Lane &lane);
void post_receive(Lane &lane, uint64_t number);

// The oldest operation that fetches, or the oldest reply, must have brought the right data.
void check_fetched(Lane &lane);
void check_reply(Lane &lane);

#endif
