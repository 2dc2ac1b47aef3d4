// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// load_client.hh -- the client's side of a load: posts operations and measures their latency

#pragma once

#include "load_generator.hh"

// Thread function of a worker: executes the warm-up, waits at the gate, executes the load.
void run_load(Worker &worker);
