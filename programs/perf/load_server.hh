// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load_server.hh -- the server's side of a load: receives and echoes messages, and checks the
// data

#pragma once

#include "load_generator.hh"

Queues serve_queues(const Plan &plan);

// Posts the receives of a connection to its request.
void serve_post_receives(Connection &connection);

// Body of a worker thread; used only by loads of messages.
void run_serve(Worker &worker);

// Before a verified load: writes the data that reads must return, or zeros.
void serve_fill(LoadGenerator &generator);
// Returns true if all messages that the client counted have arrived.
bool serve_received_all(const LoadGenerator &generator, const std::vector<uint64_t> &counts);
// After a verified load of counts[] operations per connection: checks the data.
void serve_check(LoadGenerator &generator, const std::vector<uint64_t> &counts);
