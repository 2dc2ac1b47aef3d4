// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// shortening.hh -- removes the choices of a schedule that its finding does not need

#pragma once

#include <functional>

#include "chooser.hh"

// Runs the schedule of the choices. Returns true if it has the same finding. `turns`: NULL, or
// gets Chooser::points.
using Fails = std::function<bool(const std::vector<sim::Choice> &choices,
                                 std::vector<sim::Point> *turns)>;
std::vector<sim::Choice> shorten_schedule(std::vector<sim::Choice> choices, const Fails &fails);
