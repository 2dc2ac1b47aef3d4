// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lane.h -- one connection of the client's load: places, data, and posting

#ifndef RPMA_PERF_LANE_H
#define RPMA_PERF_LANE_H 1

#include "crew.h"

struct queues lane_queues(const struct plan *plan);
size_t lane_memory_size(const struct plan *plan); // per connection
size_t lane_place_size(const struct plan *plan);

// Posts the receives and makes the batches of an established connection.
bool lane_prepare(struct lane *lane);

// Posts the next operation, or the next batch.
bool lane_post(struct lane *lane);
// Posts a flush of all earlier writes.
bool lane_flush(struct lane *lane);
bool lane_post_receive(struct lane *lane, uint64_t number);

// Whether the oldest read, or the oldest reply, brought the right data.
bool lane_check_read(struct lane *lane);
bool lane_check_reply(struct lane *lane);

#endif
