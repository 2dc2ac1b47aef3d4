// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// post.hh -- posting of work requests: a return code for the caller, failures out of line

#pragma once

#include "api/export.hh"
#include "core/work_request.hh"

namespace rpma::api {

[[gnu::cold, gnu::noinline]] inline int post_failed(const char *function, const char *call,
                                                    int error) {
    return report(function, {RPMA_E_PROVIDER, call, error});
}

inline int post_send(const char *function, ibv_qp *qp, ibv_send_wr &wr) {
    ibv_send_wr *bad;
    const int error = ibv_post_send(qp, &wr, &bad);
    return error == 0 ? 0 : post_failed(function, "ibv_post_send()", error);
}

} // namespace rpma::api
