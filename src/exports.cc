// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// exports.cc -- all exported functions as one translation unit
//
// A program that was linked with an old release resolves a function at the version node of that
// release, which is an alias. Compilers require an alias in the translation unit of its
// function. symbol_versions.hh, generated from contract/, declares all aliases, so
// the functions themselves need no annotations.

// The members of this class are in this unit but are not exported.
struct [[gnu::visibility("hidden")]] rpma_batch;

#pragma GCC visibility push(default)
#include "librpma.h"
#ifdef RPMA_SYMBOL_VERSIONS
#include "symbol_versions.hh"
#endif
#pragma GCC visibility pop

#include "api/conn.cc"
#include "api/conn_cfg.cc"
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
#include "post/messages.cc"
#include "post/post.cc"
#include "post/rma.cc"
