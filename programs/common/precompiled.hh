// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// precompiled.hh -- external headers that most units include, and that take long to parse

#include <fmt/format.h>
#include <librpma.hpp>
#include <nlohmann/json.hpp>
