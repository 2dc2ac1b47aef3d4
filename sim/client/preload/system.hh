// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// system.hh -- requests of protocol.hh to the simulated kernel of the host

#pragma once

#include "../../protocol/protocol.hh"

// Sends a request, with `more` bytes after it, over a connection of its own: a program that
// does not use RDMA has none, and after fork() none is shared. Returns an error number.
// `length`: the size of `reply`, and then of what was received.
int ask_system(const void *request, size_t size, const void *more, size_t more_size,
               void *reply, size_t &length);
