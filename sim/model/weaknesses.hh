// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// weaknesses.hh -- effects that a device may have although most runs do not show them.

#pragma once

#include <cstdint>

namespace sim {

enum class Weakness : uint8_t {
    WORD_ORDER, // the words of a write become visible one by one
    COUNT
};

} // namespace sim
