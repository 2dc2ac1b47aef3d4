// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_cfg.cc -- exports: connection configurations

#include "api/export.hh"
#include "core/config.hh"

using namespace rpma;

int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr) {
    RPMA_REFUSE(cfg_ptr == NULL);
    Call call(__func__);
    return call.deliver(make<rpma_conn_cfg>(call), cfg_ptr);
}

int rpma_conn_cfg_delete(struct rpma_conn_cfg **cfg_ptr) {
    RPMA_REFUSE(cfg_ptr == NULL);
    return discard(cfg_ptr);
}

int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg *cfg, int timeout_ms) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(timeout_ms < 0);
    cfg->timeout_ms = timeout_ms;
    return 0;
}

int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(timeout_ms == NULL);
    *timeout_ms = cfg->timeout_ms;
    return 0;
}

int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size) {
    RPMA_REFUSE(cfg == NULL);
    cfg->cq_size = cq_size;
    cfg->cq_size_set = true;
    return 0;
}

int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg *cfg, uint32_t *cq_size) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(cq_size == NULL);
    *cq_size = cfg->cq_size;
    return 0;
}

int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg *cfg, uint32_t rcq_size) {
    RPMA_REFUSE(cfg == NULL);
    cfg->rcq_size = rcq_size;
    return 0;
}

int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg *cfg, uint32_t *rcq_size) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(rcq_size == NULL);
    *rcq_size = cfg->rcq_size;
    return 0;
}

int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg *cfg, uint32_t sq_size) {
    RPMA_REFUSE(cfg == NULL);
    cfg->sq_size = sq_size;
    return 0;
}

int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg *cfg, uint32_t *sq_size) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(sq_size == NULL);
    *sq_size = cfg->sq_size;
    return 0;
}

int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg *cfg, uint32_t rq_size) {
    RPMA_REFUSE(cfg == NULL);
    cfg->rq_size = rq_size;
    return 0;
}

int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg *cfg, uint32_t *rq_size) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(rq_size == NULL);
    *rq_size = cfg->rq_size;
    return 0;
}

int rpma_conn_cfg_set_max_sge(struct rpma_conn_cfg *cfg, uint32_t max_sge) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(max_sge == 0);
    cfg->max_sge = max_sge;
    return 0;
}

int rpma_conn_cfg_get_max_sge(const struct rpma_conn_cfg *cfg, uint32_t *max_sge) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(max_sge == NULL);
    *max_sge = cfg->max_sge;
    return 0;
}

int rpma_conn_cfg_set_ack_timeout(struct rpma_conn_cfg *cfg, int timeout_ms) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(timeout_ms < 0);
    RPMA_REFUSE(timeout_ms > 8796093); // 4.096 us * 2^31
    cfg->ack_timeout_ms = timeout_ms;
    return 0;
}

int rpma_conn_cfg_get_ack_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(timeout_ms == NULL);
    *timeout_ms = cfg->ack_timeout_ms;
    return 0;
}

int rpma_conn_cfg_set_retry_count(struct rpma_conn_cfg *cfg, uint32_t retry_count) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(retry_count > 7);
    cfg->retry_count = static_cast<uint8_t>(retry_count);
    return 0;
}

int rpma_conn_cfg_get_retry_count(const struct rpma_conn_cfg *cfg, uint32_t *retry_count) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(retry_count == NULL);
    *retry_count = cfg->retry_count;
    return 0;
}

int rpma_conn_cfg_set_rnr_retry_count(struct rpma_conn_cfg *cfg, uint32_t rnr_retry_count) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(rnr_retry_count > 7);
    cfg->rnr_retry_count = static_cast<uint8_t>(rnr_retry_count);
    return 0;
}

int rpma_conn_cfg_get_rnr_retry_count(const struct rpma_conn_cfg *cfg,
                                      uint32_t *rnr_retry_count) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(rnr_retry_count == NULL);
    *rnr_retry_count = cfg->rnr_retry_count;
    return 0;
}

int rpma_conn_cfg_set_tos(struct rpma_conn_cfg *cfg, uint8_t tos) {
    RPMA_REFUSE(cfg == NULL);
    cfg->tos = tos;
    return 0;
}

int rpma_conn_cfg_get_tos(const struct rpma_conn_cfg *cfg, uint8_t *tos) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(tos == NULL);
    *tos = cfg->tos;
    return 0;
}

int rpma_conn_cfg_set_flush_mode(struct rpma_conn_cfg *cfg, enum rpma_flush_mode mode) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(mode != RPMA_FLUSH_MODE_AUTO && mode != RPMA_FLUSH_MODE_EMULATED &&
                mode != RPMA_FLUSH_MODE_NATIVE);
    cfg->flush_mode = mode;
    return 0;
}

int rpma_conn_cfg_get_flush_mode(const struct rpma_conn_cfg *cfg, enum rpma_flush_mode *mode) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(mode == NULL);
    *mode = cfg->flush_mode;
    return 0;
}

int rpma_conn_cfg_set_inline_size(struct rpma_conn_cfg *cfg, uint32_t inline_size) {
    RPMA_REFUSE(cfg == NULL);
    cfg->inline_size = inline_size;
    return 0;
}

int rpma_conn_cfg_get_inline_size(const struct rpma_conn_cfg *cfg, uint32_t *inline_size) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(inline_size == NULL);
    *inline_size = cfg->inline_size;
    return 0;
}

int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg *cfg, bool shared) {
    RPMA_REFUSE(cfg == NULL);
    cfg->shared_channel = shared;
    return 0;
}

int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg *cfg, bool *shared) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(shared == NULL);
    *shared = cfg->shared_channel;
    return 0;
}

int rpma_conn_cfg_set_srq(struct rpma_conn_cfg *cfg, struct rpma_srq *srq) {
    RPMA_REFUSE(cfg == NULL);
    cfg->srq = srq;
    return 0;
}

int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg *cfg, struct rpma_srq **srq_ptr) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(srq_ptr == NULL);
    *srq_ptr = cfg->srq;
    return 0;
}

int rpma_conn_cfg_set_cq(struct rpma_conn_cfg *cfg, struct rpma_cq *cq) {
    RPMA_REFUSE(cfg == NULL);
    cfg->cq = cq;
    return 0;
}

int rpma_conn_cfg_get_cq(const struct rpma_conn_cfg *cfg, struct rpma_cq **cq_ptr) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(cq_ptr == NULL);
    *cq_ptr = cfg->cq;
    return 0;
}

int rpma_conn_cfg_set_rcq(struct rpma_conn_cfg *cfg, struct rpma_cq *rcq) {
    RPMA_REFUSE(cfg == NULL);
    cfg->rcq = rcq;
    return 0;
}

int rpma_conn_cfg_get_rcq(const struct rpma_conn_cfg *cfg, struct rpma_cq **rcq_ptr) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(rcq_ptr == NULL);
    *rcq_ptr = cfg->rcq;
    return 0;
}
