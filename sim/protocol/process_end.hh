// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// process_end.hh -- the request of a process that ends

#pragma once

#include <cstdint>

namespace sim {

// Of a Wait::YIELD, as `object`: the process ends, and its other threads continue before.
constexpr uint64_t ENDS_PROCESS = 1;

} // namespace sim
