// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// exports.cc -- all exported functions as one unit
//
// A program of an old release finds a function at the version node of that release, by an
// alias, and compilers want an alias in the unit of its function. symbol_versions.hh declares
// them all, made from contract/symbols.tsv, so that each function reads like any other.

// The members of this class are in this unit and are no exports.
struct [[gnu::visibility("hidden")]] rpma_batch;

#pragma GCC visibility push(default)
#include "librpma.h"
#ifdef RPMA_SYMBOL_VERSIONS
#include "symbol_versions.hh"
#endif
#pragma GCC visibility pop

#include "api/conn.cc"
#include "api/conn_req.cc"
#include "api/cq.cc"
#include "api/ep.cc"
#include "api/log.cc"
#include "api/mr.cc"
#include "api/peer.cc"
#include "api/private_data.cc"
#include "api/settings.cc"
#include "api/srq.cc"
#include "api/utils.cc"
#include "compat/completion.cc"
#include "post/batch.cc"
#include "post/flush.cc"
#include "post/message.cc"
#include "post/receives.cc"
#include "post/rma.cc"
#include "post/works.cc"
