// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// tuned.hh -- the few places where the code bends to the compiler, and what each of them buys
//
// Measured with bench/check.py in the packaged build, each taken out alone.

#pragma once

#include <infiniband/verbs.h>

// An exported post writes its work request and nothing else into the addresses that it takes,
// and the provider only reads there. Without the stack protector, which distributions switch
// on, a write takes 6 instructions fewer, and a native flush 8. GCC 11 and clang 11 know it.
#define RPMA_POST [[gnu::no_stack_protector]]

namespace rpma {

// A failed post needs its queue pair for the log. To keep it over the provider's call takes two
// saved registers and 5 instructions; in a member of the request that only IBV_WR_TSO reads, it
// takes one.
inline void keep_queue_pair(ibv_send_wr &wr, ibv_qp *qp) {
    wr.tso.hdr = qp;
}
inline const ibv_qp &kept_queue_pair(const ibv_send_wr &wr) {
    return *static_cast<const ibv_qp *>(wr.tso.hdr);
}

} // namespace rpma
