// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// exports.cc -- all exported functions as one unit
//
// A program of an old release finds a function at the version node of that release, by an
// alias, and compilers want an alias in the unit of its function. symbol_versions.hh declares
// them all, made from contract/symbols.tsv, so that each function reads like any other.

#pragma GCC visibility push(default)
#include "librpma.h"
#ifdef RPMA_SYMBOL_VERSIONS
#include "symbol_versions.hh"
#endif
#pragma GCC visibility pop

#include "api/batch.cc"
#include "api/batch_post.cc"
#include "api/conn.cc"
#include "api/conn_cfg.cc"
#include "api/conn_req.cc"
#include "api/cq.cc"
#include "api/ep.cc"
#include "api/log.cc"
#include "api/message.cc"
#include "api/mr.cc"
#include "api/peer.cc"
#include "api/peer_cfg.cc"
#include "api/private_data.cc"
#include "api/rma.cc"
#include "api/srq.cc"
#include "api/utils.cc"
#include "compat/completion.cc"
