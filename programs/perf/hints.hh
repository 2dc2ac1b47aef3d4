// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// hints.hh -- equivalents of the options of perftest and fio

#pragma once

#include <string>
#include <string_view>

// " (the equivalent)" for an argument that is not an option of rpma-perf, or "".
std::string hint_for_unknown(std::string_view argument);

// The same for an existing option, by its long name, if a bad value shows that another
// tool's option was meant.
std::string hint_for_value(std::string_view option, std::string_view value);
