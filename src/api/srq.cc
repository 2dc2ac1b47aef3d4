// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// srq.cc -- exports: shared receive queues

#include "core/srq.hh"
#include "api/getter.hh"

using namespace rpma;

int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg, struct rpma_srq **srq_ptr) {
    RPMA_REFUSE(peer == NULL);
    RPMA_REFUSE(srq_ptr == NULL);
    Call call(__func__);
    return call.deliver(rpma_srq::create(call, *peer, settings_of(cfg)), srq_ptr);
}

int rpma_srq_delete(struct rpma_srq **srq_ptr) {
    RPMA_REFUSE(srq_ptr == NULL);
    return try_delete(__func__, srq_ptr);
}

int rpma_srq_set_limit(struct rpma_srq *srq, uint32_t limit) {
    RPMA_REFUSE(srq == NULL);
    Call call(__func__);
    srq->set_limit(call, limit);
    return call.finish();
}

int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr) {
    RPMA_GET(srq, rcq_ptr, srq->rcq());
}
