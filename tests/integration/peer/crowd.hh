// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// crowd.hh -- sizes for a client with many connections and a server that executes "serve"

#pragma once

#include <cstddef>
#include <librpma.h>

// Each connection has a share of the server's region 0 and two message buffers in region 1.
constexpr size_t SHARE = 8192, MESSAGE = 1024;

// Sends a message, or a message with immediate data.
int send(rpma_conn *conn, rpma_mr_local *mr, size_t at, size_t len, bool with_imm,
         uint32_t imm);
