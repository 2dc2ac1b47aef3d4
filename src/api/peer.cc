// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.cc -- exports: peers

#include "core/peer.hh"
#include "api/export.hh"

using namespace rpma;

int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr) {
    RPMA_REFUSE(ibv_ctx == NULL);
    RPMA_REFUSE(peer_ptr == NULL);
    Call call(__func__);
    return call.deliver(rpma_peer::create(call, *ibv_ctx), peer_ptr);
}

int rpma_peer_get_ibv_pd(const struct rpma_peer *peer, struct ibv_pd **pd_ptr) {
    RPMA_REFUSE(peer == NULL);
    RPMA_REFUSE(pd_ptr == NULL);
    *pd_ptr = &peer->pd();
    return 0;
}

int rpma_peer_delete(struct rpma_peer **peer_ptr) {
    RPMA_REFUSE(peer_ptr == NULL);
    return delete_or_keep(__func__, peer_ptr);
}
