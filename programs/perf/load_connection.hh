// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load_connection.hh -- one connection of the client's load: places, data, and posting

#pragma once

#include "load_generator.hh"

constexpr size_t CREDIT_SIZE = 8; // bytes of the message that permits further sends

Queues connection_queues(const Plan &plan);
size_t connection_memory_size(const Plan &plan); // bytes per connection
// Offset of the first connection's memory; the memory before it is the peer's target (--both).
size_t connection_memory_offset(const Plan &plan);

// Starts connecting.
void start(Connection &connection);
// Advances the connection without blocking.
CmLink::Step advance(Connection &connection);
// Posts the receives and creates the batches of an established connection.
void prepare(Connection &connection);

// Posts the next operation, or the next batch.
void post(Connection &connection);
// Posts a flush of all earlier writes.
void post_flush(Connection &connection);
void post_receive(Connection &connection, uint64_t number);

// Throw a Failure if the oldest fetching operation, or the oldest reply, has returned wrong
// data.
void check_fetched(Connection &connection);
void check_reply(Connection &connection);
