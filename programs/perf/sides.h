// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// sides.h -- the entry points of server and client

#ifndef RPMA_PERF_SIDES_H
#define RPMA_PERF_SIDES_H 1

#include "options.h"

// Return the exit status.
int run_server(const struct options *options);
int run_client(struct options *options);
int run_check(const struct options *options);

#endif
