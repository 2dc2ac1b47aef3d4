// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.cc -- exports: peers, and the descriptors of their configurations

#include "core/peer.hh"
#include "api/getter.hh"
#include "wire/descriptor.hh"

using namespace rpma;

int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr) {
    RPMA_REFUSE(ibv_ctx == NULL);
    RPMA_REFUSE(peer_ptr == NULL);
    Call call(__func__);
    return call.deliver(rpma_peer::create(call, *ibv_ctx), peer_ptr);
}

int rpma_peer_delete(struct rpma_peer **peer_ptr) {
    RPMA_REFUSE(peer_ptr == NULL);
    return try_delete(__func__, peer_ptr);
}

int rpma_peer_get_ibv_pd(const struct rpma_peer *peer, struct ibv_pd **pd_ptr) {
    RPMA_GET(peer, pd_ptr, &peer->pd());
}

int rpma_peer_get_event_fd(const struct rpma_peer *peer, int *fd) {
    RPMA_GET(peer, fd, peer->event_fd());
}

int rpma_peer_next_event(struct rpma_peer *peer, struct rpma_peer_event *event) {
    RPMA_REFUSE(peer == NULL);
    RPMA_REFUSE(event == NULL);
    Call call(__func__);
    peer->next_event(call, *event);
    return call.finish();
}

int rpma_peer_cfg_get_descriptor_size(const struct rpma_peer_cfg *pcfg, size_t *desc_size) {
    RPMA_GET(pcfg, desc_size, PEER_CFG_DESCRIPTOR_SIZE);
}

int rpma_peer_cfg_get_descriptor(const struct rpma_peer_cfg *pcfg, void *desc) {
    RPMA_REFUSE(pcfg == NULL);
    RPMA_REFUSE(desc == NULL);
    const PeerSettings settings = pcfg->read();
    *static_cast<unsigned char *>(desc) =
        put_peer_cfg(settings.direct_write_to_pmem, settings.served);
    return 0;
}

int rpma_peer_cfg_from_descriptor(const void *desc, size_t desc_size,
                                  struct rpma_peer_cfg **pcfg_ptr) {
    RPMA_REFUSE(desc == NULL);
    RPMA_REFUSE(pcfg_ptr == NULL);
    Call call(__func__);
    if (!check_descriptor_size(call, desc_size, PEER_CFG_DESCRIPTOR_SIZE))
        return call.finish();
    const unsigned char byte = *static_cast<const unsigned char *>(desc);
    return call.deliver(rpma_peer_cfg::create(call, {byte != 0, served_of(byte)}), pcfg_ptr);
}
