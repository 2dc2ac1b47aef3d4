// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// encode.hh -- lists of requests as bytes of the protocol.

#ifndef RPMA_SIM_ENCODE_HH
#define RPMA_SIM_ENCODE_HH 1

#include "shim.hh"

namespace sim {

bool append(Encoder &to, const void *bytes, size_t size); // false: no room
bool append_padding(Encoder &to);
// Sends the list and empties it; `taken` grows by the requests that were accepted.
int send_built(ibv_qp *qp, Encoder &encoder);

} // namespace sim

#endif // RPMA_SIM_ENCODE_HH
