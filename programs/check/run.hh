// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// run.hh -- the client

#ifndef RPMA_CHECK_RUN_HH
#define RPMA_CHECK_RUN_HH 1

#include "helper.hh"

int run_client(const Options &options, Helper &helper);

#endif
