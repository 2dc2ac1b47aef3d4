// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer_cfg.cc -- exports: peer configurations and their descriptors

#include "api/export.hh"
#include "core/config.hh"
#include "core/descriptor.hh"
#include "core/peer.hh"

using namespace rpma;

int rpma_peer_cfg_new(struct rpma_peer_cfg **pcfg_ptr) {
    RPMA_REFUSE(pcfg_ptr == NULL);
    Call call(__func__);
    return call.deliver(make<rpma_peer_cfg>(call), pcfg_ptr);
}

int rpma_peer_cfg_delete(struct rpma_peer_cfg **pcfg_ptr) {
    RPMA_REFUSE(pcfg_ptr == NULL);
    return discard(pcfg_ptr);
}

int rpma_peer_cfg_set_direct_write_to_pmem(struct rpma_peer_cfg *pcfg, bool supported) {
    RPMA_REFUSE(pcfg == NULL);
    pcfg->direct_write_to_pmem = supported;
    return 0;
}

int rpma_peer_cfg_get_direct_write_to_pmem(const struct rpma_peer_cfg *pcfg, bool *supported) {
    RPMA_REFUSE(pcfg == NULL);
    RPMA_REFUSE(supported == NULL);
    *supported = pcfg->direct_write_to_pmem;
    return 0;
}

int rpma_peer_cfg_set_native(struct rpma_peer_cfg *pcfg, const struct rpma_peer *peer) {
    RPMA_REFUSE(pcfg == NULL);
    RPMA_REFUSE(peer == NULL);
    pcfg->served = peer->served();
    return 0;
}

int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc) {
    RPMA_REFUSE(pcfg == NULL);
    RPMA_REFUSE(desc == NULL);
    pcfg->describe(static_cast<unsigned char *>(desc));
    return 0;
}

int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg, size_t *desc_size) {
    RPMA_REFUSE(pcfg == NULL);
    RPMA_REFUSE(desc_size == NULL);
    *desc_size = PEER_CFG_DESCRIPTOR_SIZE;
    return 0;
}

int rpma_peer_cfg_from_descriptor(const void *desc, size_t desc_size,
                                  struct rpma_peer_cfg **pcfg_ptr) {
    RPMA_REFUSE(desc == NULL);
    RPMA_REFUSE(pcfg_ptr == NULL);
    Call call(__func__);
    if (!check_descriptor_size(call, desc_size, PEER_CFG_DESCRIPTOR_SIZE))
        return call.finish();
    return call.deliver(
        rpma_peer_cfg::from_descriptor(call, static_cast<const unsigned char *>(desc)),
        pcfg_ptr);
}
