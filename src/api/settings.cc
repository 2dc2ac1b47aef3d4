// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// settings.cc -- exports: configurations of peers, endpoints and queues

#include "api/getter.hh"
#include "core/config.hh"
#include "core/peer.hh"

using namespace rpma;

// Parameters have the names of the header, because log lines show them.

int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr) {
    RPMA_REFUSE(pcfg_ptr == NULL);
    Call call(__func__);
    return call.deliver(make<struct rpma_peer_cfg>(call), pcfg_ptr);
}

int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr) {
    RPMA_REFUSE(pcfg_ptr == NULL);
    return delete_and_clear(pcfg_ptr);
}

int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg, bool supported) {
    RPMA_REFUSE(pcfg == NULL);
    return pcfg->set(&PeerSettings::direct_write_to_pmem, supported);
}

int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg *pcfg, bool *supported) {
    RPMA_GET(pcfg, supported, pcfg->get(&PeerSettings::direct_write_to_pmem));
}

int rpma_peer_cfg_set_served_by(struct rpma_peer_cfg *pcfg, const struct rpma_peer *peer) {
    RPMA_REFUSE(pcfg == NULL);
    RPMA_REFUSE(peer == NULL);
    return pcfg->set(&PeerSettings::served, peer->served());
}

int rpma_peer_cfg_get_served(const struct rpma_peer_cfg *pcfg, bool *is_advertised, bool *flush,
                             bool *atomic_write) {
    RPMA_REFUSE(pcfg == NULL);
    RPMA_REFUSE(is_advertised == NULL);
    RPMA_REFUSE(flush == NULL);
    RPMA_REFUSE(atomic_write == NULL);
    const uint8_t served = pcfg->get(&PeerSettings::served);
    *is_advertised = served != 0;
    *flush = (served & SERVES_FLUSH) != 0;
    *atomic_write = (served & SERVES_ATOMIC_WRITE) != 0;
    return 0;
}

int rpma_cq_cfg_new(struct rpma_cq_cfg **cfg_ptr) {
    RPMA_REFUSE(cfg_ptr == NULL);
    Call call(__func__);
    return call.deliver(make<struct rpma_cq_cfg>(call), cfg_ptr);
}

int rpma_cq_cfg_delete(struct rpma_cq_cfg **cfg_ptr) {
    RPMA_REFUSE(cfg_ptr == NULL);
    return delete_and_clear(cfg_ptr);
}

int rpma_cq_cfg_set_size(struct rpma_cq_cfg *cfg, uint32_t size) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&CqSettings::size, size);
}

int rpma_cq_cfg_get_size(const struct rpma_cq_cfg *cfg, uint32_t *size) {
    RPMA_GET(cfg, size, cfg->get(&CqSettings::size));
}

int rpma_cq_cfg_set_comp_vector(struct rpma_cq_cfg *cfg, uint32_t comp_vector) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&CqSettings::comp_vector, comp_vector);
}

int rpma_cq_cfg_get_comp_vector(const struct rpma_cq_cfg *cfg, uint32_t *comp_vector) {
    RPMA_GET(cfg, comp_vector, cfg->get(&CqSettings::comp_vector));
}

int rpma_srq_cfg_new(struct rpma_srq_cfg **cfg_ptr) {
    RPMA_REFUSE(cfg_ptr == NULL);
    Call call(__func__);
    return call.deliver(make<struct rpma_srq_cfg>(call), cfg_ptr);
}

int rpma_srq_cfg_delete(struct rpma_srq_cfg **cfg_ptr) {
    RPMA_REFUSE(cfg_ptr == NULL);
    return delete_and_clear(cfg_ptr);
}

int rpma_srq_cfg_set_rq_size(struct rpma_srq_cfg *cfg, uint32_t rq_size) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&SrqSettings::rq_size, rq_size);
}

int rpma_srq_cfg_get_rq_size(const struct rpma_srq_cfg *cfg, uint32_t *rq_size) {
    RPMA_GET(cfg, rq_size, cfg->get(&SrqSettings::rq_size));
}

int rpma_srq_cfg_set_rcq_size(struct rpma_srq_cfg *cfg, uint32_t rcq_size) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&SrqSettings::rcq_size, rcq_size);
}

int rpma_srq_cfg_get_rcq_size(const struct rpma_srq_cfg *cfg, uint32_t *rcq_size) {
    RPMA_GET(cfg, rcq_size, cfg->get(&SrqSettings::rcq_size));
}

int rpma_srq_cfg_set_max_sge(struct rpma_srq_cfg *cfg, uint32_t max_sge) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE_VALUE(__func__, max_sge == 0, max_sge, "1 and more");
    return cfg->set(&SrqSettings::max_sge, max_sge);
}

int rpma_srq_cfg_get_max_sge(const struct rpma_srq_cfg *cfg, uint32_t *max_sge) {
    RPMA_GET(cfg, max_sge, cfg->get(&SrqSettings::max_sge));
}

int rpma_ep_cfg_new(struct rpma_ep_cfg **cfg_ptr) {
    RPMA_REFUSE(cfg_ptr == NULL);
    Call call(__func__);
    return call.deliver(make<struct rpma_ep_cfg>(call), cfg_ptr);
}

int rpma_ep_cfg_delete(struct rpma_ep_cfg **cfg_ptr) {
    RPMA_REFUSE(cfg_ptr == NULL);
    return delete_and_clear(cfg_ptr);
}

int rpma_ep_cfg_set_backlog(struct rpma_ep_cfg *cfg, uint32_t backlog) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE_VALUE(__func__, backlog > INT32_MAX, backlog, "0 to 2147483647");
    return cfg->set(&EpSettings::backlog, backlog);
}

int rpma_ep_cfg_get_backlog(const struct rpma_ep_cfg *cfg, uint32_t *backlog) {
    RPMA_GET(cfg, backlog, cfg->get(&EpSettings::backlog));
}

int rpma_ep_cfg_set_ipv6_only(struct rpma_ep_cfg *cfg, bool ipv6_only) {
    RPMA_REFUSE(cfg == NULL);
    return cfg->set(&EpSettings::ipv6_only, ipv6_only);
}

int rpma_ep_cfg_get_ipv6_only(const struct rpma_ep_cfg *cfg, bool *ipv6_only) {
    RPMA_GET(cfg, ipv6_only, cfg->get(&EpSettings::ipv6_only));
}
