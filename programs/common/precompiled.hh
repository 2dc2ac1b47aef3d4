// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// precompiled.hh -- what most units include from elsewhere and takes longer to parse than they
// do

#include <fmt/format.h>
#include <librpma.hpp>
#include <nlohmann/json.hpp>
