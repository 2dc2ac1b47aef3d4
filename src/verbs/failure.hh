// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// failure.hh -- what a provider call reported: the only place that reads errno

#pragma once

#include <cerrno>

#include "base/result.hh"

namespace rpma::verbs {

// For calls that return an error number (most of libibverbs).
inline Status check(const char *call, int error) {
    if (error != 0)
        return fail({RPMA_E_PROVIDER, call, error});
    return {};
}

// For calls that return -1 or NULL and set errno.
inline tl::unexpected<Failure> failed(const char *call) {
    return fail({RPMA_E_PROVIDER, call, errno});
}

// For calls of librdmacm that return 0 or -1.
inline Status check_errno(const char *call, int result) {
    if (result != 0)
        return failed(call);
    return {};
}

} // namespace rpma::verbs
