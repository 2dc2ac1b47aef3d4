// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// conn_cfg.cc -- exports: configurations of connections

#include "api/getter.hh"

#include <cstring>

#include "base/visible.hh"
#include "core/config.hh"

using namespace rpma;

// Parameters have the names of the header, because log lines show them.

int rpma_conn_cfg_new(struct rpma_conn_cfg **cfg_ptr) {
    RPMA_REFUSE(cfg_ptr == NULL);
    Call call(__func__);
    return call.deliver(make<struct rpma_conn_cfg>(call), cfg_ptr);
}

int rpma_conn_cfg_delete(struct rpma_conn_cfg **cfg_ptr) {
    RPMA_REFUSE(cfg_ptr == NULL);
    return delete_and_clear(cfg_ptr);
}

int rpma_conn_cfg_set_timeout(struct rpma_conn_cfg *cfg, int timeout_ms) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE_VALUE(__func__, timeout_ms < 0, timeout_ms, "0 and more");
    return cfg->set(&ConnSettings::timeout_ms, timeout_ms);
}

int rpma_conn_cfg_get_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms) {
    RPMA_GET(cfg, timeout_ms, cfg->get(&ConnSettings::timeout_ms));
}

int rpma_conn_cfg_set_source_addr(struct rpma_conn_cfg *cfg, const char *addr) {
    RPMA_REFUSE(cfg == NULL);
    Source source = {};
    if (addr != nullptr)
        source = parse_address(addr);
    RPMA_REFUSE_AS(__func__, addr != NULL && source.sin6_family == AF_UNSPEC,
                   "addr is %s; possible: a numeric IPv4 or IPv6 address, or NULL",
                   Visible(addr).chars);
    cfg->change([&](ConnSettings &settings) {
        source.sin6_port = settings.source.sin6_port;
        settings.source = source;
    });
    return 0;
}

int rpma_conn_cfg_get_source_addr(const struct rpma_conn_cfg *cfg,
                                  struct sockaddr_storage *addr) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(addr == NULL);
    const Source source = cfg->get(&ConnSettings::source);
    *addr = {};
    std::memcpy(addr, &source, sizeof(source));
    return 0;
}

int rpma_conn_cfg_set_source_port(struct rpma_conn_cfg *cfg, uint32_t port) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE_VALUE(__func__, port > UINT16_MAX, port, "0 to 65535");
    return cfg->change([&](ConnSettings &settings) {
        settings.source.sin6_port = htons(static_cast<uint16_t>(port));
    });
}

int rpma_conn_cfg_get_source_port(const struct rpma_conn_cfg *cfg, uint32_t *port) {
    RPMA_GET(cfg, port, ntohs(cfg->get(&ConnSettings::source).sin6_port));
}

int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->change([&](ConnSettings &settings) {
        settings.cq_size = cq_size;
        settings.is_cq_size_set = true;
    });
}

int rpma_conn_cfg_get_cq_size(const struct rpma_conn_cfg *cfg, uint32_t *cq_size) {
    RPMA_GET(cfg, cq_size, cfg->get(&ConnSettings::cq_size));
}

int rpma_conn_cfg_set_rcq_size(struct rpma_conn_cfg *cfg, uint32_t rcq_size) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&ConnSettings::rcq_size, rcq_size);
}

int rpma_conn_cfg_get_rcq_size(const struct rpma_conn_cfg *cfg, uint32_t *rcq_size) {
    RPMA_GET(cfg, rcq_size, cfg->get(&ConnSettings::rcq_size));
}

int rpma_conn_cfg_set_sq_size(struct rpma_conn_cfg *cfg, uint32_t sq_size) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&ConnSettings::sq_size, sq_size);
}

int rpma_conn_cfg_get_sq_size(const struct rpma_conn_cfg *cfg, uint32_t *sq_size) {
    RPMA_GET(cfg, sq_size, cfg->get(&ConnSettings::sq_size));
}

int rpma_conn_cfg_set_rq_size(struct rpma_conn_cfg *cfg, uint32_t rq_size) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&ConnSettings::rq_size, rq_size);
}

int rpma_conn_cfg_get_rq_size(const struct rpma_conn_cfg *cfg, uint32_t *rq_size) {
    RPMA_GET(cfg, rq_size, cfg->get(&ConnSettings::rq_size));
}

int rpma_conn_cfg_set_max_sge(struct rpma_conn_cfg *cfg, uint32_t max_sge) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE_VALUE(__func__, max_sge == 0, max_sge, "1 and more");
    return cfg->set(&ConnSettings::max_sge, max_sge);
}

int rpma_conn_cfg_get_max_sge(const struct rpma_conn_cfg *cfg, uint32_t *max_sge) {
    RPMA_GET(cfg, max_sge, cfg->get(&ConnSettings::max_sge));
}

int rpma_conn_cfg_set_retry_count(struct rpma_conn_cfg *cfg, uint32_t retry_count) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE_VALUE(__func__, retry_count > 7, retry_count, "0 to 7");
    return cfg->set(&ConnSettings::retry_count, static_cast<uint8_t>(retry_count));
}

int rpma_conn_cfg_get_retry_count(const struct rpma_conn_cfg *cfg, uint32_t *retry_count) {
    RPMA_GET(cfg, retry_count, cfg->get(&ConnSettings::retry_count));
}

int rpma_conn_cfg_set_rnr_retry_count(struct rpma_conn_cfg *cfg, uint32_t rnr_retry_count) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE_VALUE(__func__, rnr_retry_count > 7, rnr_retry_count, "0 to 7");
    return cfg->set(&ConnSettings::rnr_retry_count, static_cast<uint8_t>(rnr_retry_count));
}

int rpma_conn_cfg_get_rnr_retry_count(const struct rpma_conn_cfg *cfg,
                                      uint32_t *rnr_retry_count) {
    RPMA_GET(cfg, rnr_retry_count, cfg->get(&ConnSettings::rnr_retry_count));
}

int rpma_conn_cfg_set_inline_size(struct rpma_conn_cfg *cfg, uint32_t inline_size) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&ConnSettings::inline_size, inline_size);
}

int rpma_conn_cfg_get_inline_size(const struct rpma_conn_cfg *cfg, uint32_t *inline_size) {
    RPMA_GET(cfg, inline_size, cfg->get(&ConnSettings::inline_size));
}

int rpma_conn_cfg_set_ack_timeout(struct rpma_conn_cfg *cfg, int timeout_ms) {
    RPMA_REFUSE(cfg == NULL);
    // 4.096 us * 2^31 at most
    RPMA_REFUSE_VALUE(__func__, timeout_ms < 0 || timeout_ms > 8796093, timeout_ms,
                      "0 to 8796093");
    return cfg->set(&ConnSettings::ack_timeout_ms, timeout_ms);
}

int rpma_conn_cfg_get_ack_timeout(const struct rpma_conn_cfg *cfg, int *timeout_ms) {
    RPMA_GET(cfg, timeout_ms, cfg->get(&ConnSettings::ack_timeout_ms));
}

int rpma_conn_cfg_set_rnr_timer(struct rpma_conn_cfg *cfg, int timeout_ms) {
    RPMA_REFUSE(cfg == NULL);
    // the longest time of InfiniBand is 655.36 ms
    RPMA_REFUSE_VALUE(__func__, timeout_ms < 0 || timeout_ms > 655, timeout_ms, "0 to 655");
    return cfg->set(&ConnSettings::rnr_timer_ms, timeout_ms);
}

int rpma_conn_cfg_get_rnr_timer(const struct rpma_conn_cfg *cfg, int *timeout_ms) {
    RPMA_GET(cfg, timeout_ms, cfg->get(&ConnSettings::rnr_timer_ms));
}

int rpma_conn_cfg_set_tos(struct rpma_conn_cfg *cfg, uint8_t tos) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&ConnSettings::tos, tos);
}

int rpma_conn_cfg_get_tos(const struct rpma_conn_cfg *cfg, uint8_t *tos) {
    RPMA_GET(cfg, tos, cfg->get(&ConnSettings::tos));
}

int rpma_conn_cfg_set_flush_mode(struct rpma_conn_cfg *cfg, enum rpma_flush_mode mode) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE_VALUE(__func__,
                      mode != RPMA_FLUSH_MODE_AUTO && mode != RPMA_FLUSH_MODE_EMULATED &&
                          mode != RPMA_FLUSH_MODE_NATIVE,
                      mode, "RPMA_FLUSH_MODE_*");
    return cfg->set(&ConnSettings::flush_mode, mode);
}

int rpma_conn_cfg_get_flush_mode(const struct rpma_conn_cfg *cfg, enum rpma_flush_mode *mode) {
    RPMA_GET(cfg, mode, cfg->get(&ConnSettings::flush_mode));
}

int rpma_conn_cfg_set_compl_channel(struct rpma_conn_cfg *cfg, bool shared) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&ConnSettings::shared_channel, shared);
}

int rpma_conn_cfg_get_compl_channel(const struct rpma_conn_cfg *cfg, bool *shared) {
    RPMA_GET(cfg, shared, cfg->get(&ConnSettings::shared_channel));
}

int rpma_conn_cfg_set_srq(struct rpma_conn_cfg *cfg, struct rpma_srq *srq) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&ConnSettings::srq, srq);
}

int rpma_conn_cfg_get_srq(const struct rpma_conn_cfg *cfg, struct rpma_srq **srq_ptr) {
    RPMA_GET(cfg, srq_ptr, cfg->get(&ConnSettings::srq));
}

int rpma_conn_cfg_set_cq(struct rpma_conn_cfg *cfg, struct rpma_cq *cq) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&ConnSettings::cq, cq);
}

int rpma_conn_cfg_get_cq(const struct rpma_conn_cfg *cfg, struct rpma_cq **cq_ptr) {
    RPMA_GET(cfg, cq_ptr, cfg->get(&ConnSettings::cq));
}

int rpma_conn_cfg_set_rcq(struct rpma_conn_cfg *cfg, struct rpma_cq *rcq) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&ConnSettings::rcq, rcq);
}

int rpma_conn_cfg_get_rcq(const struct rpma_conn_cfg *cfg, struct rpma_cq **rcq_ptr) {
    RPMA_GET(cfg, rcq_ptr, cfg->get(&ConnSettings::rcq));
}
