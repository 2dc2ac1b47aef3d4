// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// options.hh -- the command line

#pragma once

#include "../explore/explore.hh"

// Ends the program for wrong arguments, and after --help and --version.
ExploreSettings read_options(int argc, char *argv[]);
