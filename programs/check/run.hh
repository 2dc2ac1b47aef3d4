// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// run.hh -- the client

#pragma once

#include "helper.hh"

int run_client(const Options &options, Helper &helper);
