// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// settings.cc -- exports: configurations of peers, connections and queues

#include "api/getter.hh"
#include "core/config.hh"
#include "core/peer.hh"

using namespace rpma;

// rpma_<cfg>_new() and rpma_<cfg>_delete().
#define RPMA_CFG(cfg)                                                \
    int rpma_##cfg##_new(struct rpma_##cfg **cfg_ptr) {              \
        RPMA_REFUSE(cfg_ptr == NULL);                                \
        Call call(__func__);                                         \
        return call.deliver(make<struct rpma_##cfg>(call), cfg_ptr); \
    }                                                                \
    int rpma_##cfg##_delete(struct rpma_##cfg **cfg_ptr) {           \
        RPMA_REFUSE(cfg_ptr == NULL);                                \
        return discard(cfg_ptr);                                     \
    }

// rpma_<cfg>_set_<name>(), which refuses a value for which refused holds, and
// rpma_<cfg>_get_<name>().
#define RPMA_SETTING(cfg, name, type, member, refused)                 \
    int rpma_##cfg##_set_##name(struct rpma_##cfg *cfg, type name) {   \
        RPMA_REFUSE(cfg == NULL);                                      \
        RPMA_REFUSE(refused);                                          \
        cfg->member = static_cast<decltype(cfg->member.load())>(name); \
        return 0;                                                      \
    }                                                                  \
    RPMA_GETTER(rpma_##cfg##_get_##name, rpma_##cfg, cfg, type, name, cfg->member)

// clang-format off
RPMA_CFG(peer_cfg)
RPMA_SETTING(peer_cfg, direct_write_to_pmem, bool, direct_write_to_pmem, false)

RPMA_CFG(cq_cfg)
RPMA_SETTING(cq_cfg, size, uint32_t, size, false)
RPMA_SETTING(cq_cfg, comp_vector, uint32_t, comp_vector, false)

RPMA_CFG(srq_cfg)
RPMA_SETTING(srq_cfg, rq_size, uint32_t, rq_size, false)
RPMA_SETTING(srq_cfg, rcq_size, uint32_t, rcq_size, false)
RPMA_SETTING(srq_cfg, max_sge, uint32_t, max_sge, max_sge == 0)

RPMA_CFG(conn_cfg)
RPMA_SETTING(conn_cfg, timeout, int, timeout_ms, timeout < 0)
RPMA_SETTING(conn_cfg, rcq_size, uint32_t, rcq_size, false)
RPMA_SETTING(conn_cfg, sq_size, uint32_t, sq_size, false)
RPMA_SETTING(conn_cfg, rq_size, uint32_t, rq_size, false)
RPMA_SETTING(conn_cfg, max_sge, uint32_t, max_sge, max_sge == 0)
// 4.096 us * 2^31 at most
RPMA_SETTING(conn_cfg, ack_timeout, int, ack_timeout_ms, ack_timeout < 0 || ack_timeout > 8796093)
RPMA_SETTING(conn_cfg, retry_count, uint32_t, retry_count, retry_count > 7)
RPMA_SETTING(conn_cfg, rnr_retry_count, uint32_t, rnr_retry_count, rnr_retry_count > 7)
RPMA_SETTING(conn_cfg, tos, uint8_t, tos, false)
RPMA_SETTING(conn_cfg, flush_mode, enum rpma_flush_mode, flush_mode,
             flush_mode != RPMA_FLUSH_MODE_AUTO && flush_mode != RPMA_FLUSH_MODE_EMULATED &&
             flush_mode != RPMA_FLUSH_MODE_NATIVE)
RPMA_SETTING(conn_cfg, inline_size, uint32_t, inline_size, false)
RPMA_SETTING(conn_cfg, compl_channel, bool, shared_channel, false)
RPMA_SETTING(conn_cfg, srq, struct rpma_srq *, srq, false)
RPMA_SETTING(conn_cfg, cq, struct rpma_cq *, cq, false)
RPMA_SETTING(conn_cfg, rcq, struct rpma_cq *, rcq, false)
// clang-format on

int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size) {
    RPMA_REFUSE(cfg == NULL);
    cfg->cq_size = cq_size;
    cfg->cq_size_set = true;
    return 0;
}

RPMA_GETTER(rpma_conn_cfg_get_cq_size, rpma_conn_cfg, cfg, uint32_t, cq_size, cfg->cq_size)

int rpma_peer_cfg_set_served_by(struct rpma_peer_cfg *pcfg, const struct rpma_peer *peer) {
    RPMA_REFUSE(pcfg == NULL);
    RPMA_REFUSE(peer == NULL);
    pcfg->served = peer->served();
    return 0;
}

int rpma_peer_cfg_get_served(const struct rpma_peer_cfg *pcfg, bool *is_stated, bool *flush,
                             bool *atomic_write) {
    RPMA_REFUSE(pcfg == NULL);
    RPMA_REFUSE(is_stated == NULL);
    RPMA_REFUSE(flush == NULL);
    RPMA_REFUSE(atomic_write == NULL);
    const uint8_t served = pcfg->served;
    *is_stated = served != 0;
    *flush = (served & SERVES_FLUSH) != 0;
    *atomic_write = (served & SERVES_ATOMIC_WRITE) != 0;
    return 0;
}
