// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// plot.hh -- a picture of results: the latency over time, and how it is distributed

#pragma once

#include "report.hh"

#include <span>

// An SVG with two diagrams for each result.
std::string plot(std::span<const Result> results);
