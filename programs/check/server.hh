// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.hh -- serves checks

#ifndef RPMA_CHECK_SERVER_HH
#define RPMA_CHECK_SERVER_HH 1

#include "helper.hh"

int run_server(const Options &options, Helper &helper);

#endif
