// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// lane.h -- one connection of the client's load: places, data, and posting

#ifndef RPMA_PERF_LANE_H
#define RPMA_PERF_LANE_H 1

#include "crew.h"

struct queues lane_queues(const struct plan *plan);
size_t lane_memory_size(const struct plan *plan); // of each connection
size_t lane_place_size(const struct plan *plan);

// For a connection that is up: its receives, and its batches.
bool lane_prepare(struct lane *lane);

// The next operation, or the next batch of them.
bool lane_post(struct lane *lane);
// A flush of all that was written before.
bool lane_flush(struct lane *lane);
bool lane_post_receive(struct lane *lane, uint64_t number);

// Whether the oldest read, or the oldest reply, brought what it has to.
bool lane_check_read(struct lane *lane);
bool lane_check_reply(struct lane *lane);

#endif
