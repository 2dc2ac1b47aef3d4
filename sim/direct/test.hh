// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// test.hh -- what the functions of rdma-sim.h share.

#pragma once

#include "rdma-sim.h"

#include "../model/fabric.hh"

#include <string>

namespace sim {

// An error number, and the line of rdma_sim_error().
struct Refusal {
    int error;
    std::string why;
};

Options options_of(const rdma_sim_options *given); // throws a Refusal

// Both concern the program of rdma_sim_explore() that the calling thread runs; if there is
// none, the result is false.
bool is_explored_program();
bool sleep_of_program(uint64_t nanoseconds);

// Runs schedules until one has a finding. Returns the finding, or an empty text.
std::string explore(const rdma_sim_test &test); // throws a Refusal

} // namespace sim
