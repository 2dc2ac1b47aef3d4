// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// settings.cc -- exports: configurations of peers, connections and queues

#include "api/getter.hh"
#include "base/visible.hh"
#include "core/config.hh"
#include "core/peer.hh"
#include "verbs/address.hh"

using namespace rpma;

// Parameters have the names of the header, because log lines show them.

// rpma_<cfg>_new() and rpma_<cfg>_delete().
#define RPMA_CFG(cfg, ptr)                                       \
    int rpma_##cfg##_new(struct rpma_##cfg **ptr) {              \
        RPMA_REFUSE(ptr == NULL);                                \
        Call call(__func__);                                     \
        return call.deliver(make<struct rpma_##cfg>(call), ptr); \
    }                                                            \
    int rpma_##cfg##_delete(struct rpma_##cfg **ptr) {           \
        RPMA_REFUSE(ptr == NULL);                                \
        return discard(ptr);                                     \
    }

// rpma_<cfg>_set_<name>(), which sets member to in after the checks in refuse, and
// rpma_<cfg>_get_<name>(), which writes it to out.
#define RPMA_SETTING(cfg, object, name, type, in, out, member, refuse)     \
    int rpma_##cfg##_set_##name(struct rpma_##cfg *object, type in) {      \
        RPMA_REFUSE(object == NULL);                                       \
        refuse;                                                            \
        object->member = static_cast<decltype(object->member.load())>(in); \
        return 0;                                                          \
    }                                                                      \
    RPMA_GETTER(rpma_##cfg##_get_##name, rpma_##cfg, object, type, out, object->member)

// A setting whose parameters and member have the same name.
#define RPMA_NUMBER(kind, name, refuse) \
    RPMA_SETTING(kind, cfg, name, uint32_t, name, name, name, refuse)

// A check for the argument refuse.
#define RPMA_BUT(condition, name, possible) \
    RPMA_REFUSE_VALUE(__func__, condition, name, possible)

// clang-format off
RPMA_CFG(peer_cfg, pcfg_ptr)
RPMA_SETTING(peer_cfg, pcfg, direct_write_to_pmem, bool, supported, supported,
             direct_write_to_pmem, )

RPMA_CFG(cq_cfg, cfg_ptr)
RPMA_NUMBER(cq_cfg, size, )
RPMA_NUMBER(cq_cfg, comp_vector, )

RPMA_CFG(srq_cfg, cfg_ptr)
RPMA_NUMBER(srq_cfg, rq_size, )
RPMA_NUMBER(srq_cfg, rcq_size, )
RPMA_NUMBER(srq_cfg, max_sge, RPMA_BUT(max_sge == 0, max_sge, "1 and more"))

RPMA_CFG(ep_cfg, cfg_ptr)
RPMA_NUMBER(ep_cfg, backlog, RPMA_BUT(backlog > INT32_MAX, backlog, "0 to 2147483647"))
RPMA_SETTING(ep_cfg, cfg, ipv6_only, bool, ipv6_only, ipv6_only, ipv6_only, )

RPMA_CFG(conn_cfg, cfg_ptr)
RPMA_NUMBER(conn_cfg, rcq_size, )
RPMA_NUMBER(conn_cfg, sq_size, )
RPMA_NUMBER(conn_cfg, rq_size, )
RPMA_NUMBER(conn_cfg, max_sge, RPMA_BUT(max_sge == 0, max_sge, "1 and more"))
RPMA_NUMBER(conn_cfg, retry_count, RPMA_BUT(retry_count > 7, retry_count, "0 to 7"))
RPMA_NUMBER(conn_cfg, rnr_retry_count, RPMA_BUT(rnr_retry_count > 7, rnr_retry_count, "0 to 7"))
RPMA_NUMBER(conn_cfg, inline_size, )
RPMA_SETTING(conn_cfg, cfg, timeout, int, timeout_ms, timeout_ms, timeout_ms,
             RPMA_BUT(timeout_ms < 0, timeout_ms, "0 and more"))
// 4.096 us * 2^31 at most
RPMA_SETTING(conn_cfg, cfg, ack_timeout, int, timeout_ms, timeout_ms, ack_timeout_ms,
             RPMA_BUT(timeout_ms < 0 || timeout_ms > 8796093, timeout_ms, "0 to 8796093"))
// the largest time of InfiniBand is 655.36 ms
RPMA_SETTING(conn_cfg, cfg, rnr_timer, int, timeout_ms, timeout_ms, rnr_timer_ms,
             RPMA_BUT(timeout_ms < 0 || timeout_ms > 655, timeout_ms, "0 to 655"))
RPMA_SETTING(conn_cfg, cfg, tos, uint8_t, tos, tos, tos, )
RPMA_SETTING(conn_cfg, cfg, flush_mode, enum rpma_flush_mode, mode, mode, flush_mode,
             RPMA_BUT(mode != RPMA_FLUSH_MODE_AUTO && mode != RPMA_FLUSH_MODE_EMULATED &&
                      mode != RPMA_FLUSH_MODE_NATIVE, mode, "RPMA_FLUSH_MODE_*"))
RPMA_SETTING(conn_cfg, cfg, compl_channel, bool, shared, shared, shared_channel, )
RPMA_SETTING(conn_cfg, cfg, srq, struct rpma_srq *, srq, srq_ptr, srq, )
RPMA_SETTING(conn_cfg, cfg, cq, struct rpma_cq *, cq, cq_ptr, cq, )
RPMA_SETTING(conn_cfg, cfg, rcq, struct rpma_cq *, rcq, rcq_ptr, rcq, )
// clang-format on

int rpma_conn_cfg_set_cq_size(struct rpma_conn_cfg *cfg, uint32_t cq_size) {
    RPMA_REFUSE(cfg == NULL);
    cfg->cq_size = cq_size;
    cfg->cq_size_set = true;
    return 0;
}

RPMA_GETTER(rpma_conn_cfg_get_cq_size, rpma_conn_cfg, cfg, uint32_t, cq_size, cfg->cq_size)

int rpma_conn_cfg_set_source_addr(struct rpma_conn_cfg *cfg, const char *addr) {
    RPMA_REFUSE(cfg == NULL);
    sockaddr_storage source = {};
    if (addr != nullptr)
        source = numeric_address(addr);
    RPMA_REFUSE_AS(__func__, addr != NULL && source.ss_family == AF_UNSPEC,
                   "addr is %s; possible: a numeric IPv4 or IPv6 address, or NULL",
                   Visible(addr).chars);
    cfg->set_source([&](sockaddr_storage &now) {
        port_of(source) = port_of(now);
        now = source;
    });
    return 0;
}

int rpma_conn_cfg_get_source_addr(const struct rpma_conn_cfg *cfg,
                                  struct sockaddr_storage *addr) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(addr == NULL);
    if (!cfg->source_addr(*addr))
        *addr = {};
    return 0;
}

int rpma_conn_cfg_set_source_port(struct rpma_conn_cfg *cfg, uint32_t port) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE_VALUE(__func__, port > UINT16_MAX, port, "0 to 65535");
    cfg->set_source(
        [&](sockaddr_storage &now) { port_of(now) = htons(static_cast<uint16_t>(port)); });
    return 0;
}

int rpma_conn_cfg_get_source_port(const struct rpma_conn_cfg *cfg, uint32_t *port) {
    RPMA_REFUSE(cfg == NULL);
    RPMA_REFUSE(port == NULL);
    sockaddr_storage source = {};
    (void)cfg->source_addr(source);
    *port = ntohs(port_of(source));
    return 0;
}

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
