// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// unsupported.hh -- features that devices have and the fabric lacks.

#pragma once

// Prints one line, once for each feature and process, and returns EOPNOTSUPP. `feature` is a
// literal.
extern "C" int rdma_sim_unsupported(const char *function, const char *feature);
