// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// server.hh -- serves checks

#pragma once

#include "helper.hh"

int run_server(const Options &options, Helper &helper);
