// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the rdma-sim developers

// encode.hh -- encodes work request lists for the protocol.

#pragma once

#include "shim.hh"

namespace sim {

bool append(Encoder &to, const void *bytes, size_t size); // false: it does not fit
bool append_padding(Encoder &to);
void set_window(SendWr &head, const ibv_mw &mw, uint32_t rkey, const ibv_mw_bind_info &info);
// Posts the requests that ibv_wr_*() built, and empties the encoder.
int send_built(ibv_qp *qp, Encoder &encoder);

} // namespace sim
