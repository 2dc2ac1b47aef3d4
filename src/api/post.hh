// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// post.hh -- posting of work requests: a return code for the caller, failures out of line

#pragma once

#include <arpa/inet.h>

#include "api/export.hh"
#include "core/work_request.hh"

namespace rpma::api {

[[gnu::cold, gnu::noinline]] inline int post_failed(const char *function, const char *call,
                                                    int error) {
    // A negative number is cxgb4's way (c4iw_post_send()), and mthca returns -1 for every cause
    // (mthca_tavor_post_send()): that is no error number.
    if (error == -1)
        return report(function,
                      {RPMA_E_PROVIDER, call, 0, "failed, the provider gives no reason"});
    return report(function, {RPMA_E_PROVIDER, call, error < 0 ? -error : error});
}

inline int post_send(const char *function, ibv_qp *qp, ibv_send_wr &wr) {
    ibv_send_wr *bad;
    const int error = ibv_post_send(qp, &wr, &bad);
    return error == 0 ? 0 : post_failed(function, "ibv_post_send()", error);
}

#if defined(RPMA_NATIVE_FLUSH) || defined(RPMA_NATIVE_ATOMIC_WRITE)
// build posts one operation of an extended queue pair.
template <class Build>
int post_native(const char *function, ibv_qp_ex *qpx, unsigned send_flags,
                const void *op_context, const Build &build) {
    ibv_wr_start(qpx);
    qpx->wr_id = context_id(op_context);
    qpx->wr_flags = send_flags;
    build();
    const int error = ibv_wr_complete(qpx);
    return error == 0 ? 0 : post_failed(function, "ibv_wr_complete()", error);
}
#endif

// An operation without a region: the other side may notice, no memory is touched. Out of line:
// rare, and the usual way needs no register for what is constant there.
[[gnu::noinline]] inline int post_empty(const char *function, ibv_qp *qp, ibv_wr_opcode opcode,
                                        unsigned send_flags, uint32_t imm,
                                        const void *op_context) {
    ibv_send_wr wr;
    describe(wr, opcode, nullptr, send_flags, op_context);
    wr.wr.rdma = {0, 0};
    wr.imm_data = htonl(imm);
    return post_send(function, qp, wr);
}

} // namespace rpma::api
