// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// srq.cc -- exports: shared receive queues and their configuration

#include "core/srq.hh"
#include "api/export.hh"

using namespace rpma;

int rpma_srq_new(struct rpma_peer *peer, struct rpma_srq_cfg *cfg, struct rpma_srq **srq_ptr) {
    RPMA_REFUSE(peer == NULL);
    RPMA_REFUSE(srq_ptr == NULL);
    Call call(__func__);
    return call.deliver(rpma_srq::create(call, *peer, or_default(cfg)), srq_ptr);
}

int rpma_srq_delete(struct rpma_srq **srq_ptr) {
    RPMA_REFUSE(srq_ptr == NULL);
    return delete_or_keep(__func__, srq_ptr);
}

int rpma_srq_get_rcq(const struct rpma_srq *srq, struct rpma_cq **rcq_ptr) {
    RPMA_REFUSE(srq == NULL);
    RPMA_REFUSE(rcq_ptr == NULL);
    *rcq_ptr = srq->rcq();
    return 0;
}

int rpma_srq_cfg_new(struct rpma_srq_cfg **cfg_ptr) {
    RPMA_REFUSE(cfg_ptr == NULL);
    Call call(__func__);
    return call.deliver(make<rpma_srq_cfg>(call), cfg_ptr);
}

int rpma_srq_cfg_delete(struct rpma_srq_cfg **cfg_ptr) {
    RPMA_REFUSE(cfg_ptr == NULL);
    return discard(cfg_ptr);
}

int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg *cfg, uint32_t rq_size) {
    RPMA_REFUSE(cfg == NULL);
    cfg->rq_size = rq_size;
    return 0;
}

int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg *cfg, uint32_t *rq_size) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(rq_size == NULL);
    *rq_size = cfg->rq_size;
    return 0;
}

int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg *cfg, uint32_t rcq_size) {
    RPMA_REFUSE(cfg == NULL);
    cfg->rcq_size = rcq_size;
    return 0;
}

int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg *cfg, uint32_t *rcq_size) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(rcq_size == NULL);
    *rcq_size = cfg->rcq_size;
    return 0;
}

int rpma_srq_cfg_set_max_sge(struct rpma_srq_cfg *cfg, uint32_t max_sge) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(max_sge == 0);
    cfg->max_sge = max_sge;
    return 0;
}

int rpma_srq_cfg_get_max_sge(const struct rpma_srq_cfg *cfg, uint32_t *max_sge) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(max_sge == NULL);
    *max_sge = cfg->max_sge;
    return 0;
}
