// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// sides.hh -- the entry points of server and client

#pragma once

#include "options.hh"

// Return the exit status; throw a Failure if they fail.
int run_server(const Options &options);
int run_client(const Options &options);
