// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// chart.hh -- the steps of a finding as a sequence chart: --html

#pragma once

#include <string>
#include <vector>

#include "trace.hh"

// Returns an HTML file, which is also well-formed XML, without scripts and other files.
std::string chart(const std::string &finding, unsigned hosts, const std::vector<Step> &steps,
                  const SourceLines &lines);
