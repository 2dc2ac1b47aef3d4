// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// options.hh -- the command line

#ifndef RDMA_SIM_OPTIONS_HH
#define RDMA_SIM_OPTIONS_HH 1

#include "../explore/explore.hh"

// Ends the program for wrong arguments, and after --help and --version.
ExploreSettings read_options(int argc, char *argv[]);

#endif // RDMA_SIM_OPTIONS_HH
