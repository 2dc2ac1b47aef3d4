// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// peer.cc -- exports: peers

#include "core/peer.hh"
#include "api/export.hh"

int rpma_peer_new(struct ibv_context *ibv_ctx, struct rpma_peer **peer_ptr) {
    RPMA_REFUSE(ibv_ctx == NULL);
    RPMA_REFUSE(peer_ptr == NULL);
    return rpma::api::deliver(__func__, rpma_peer::create(*ibv_ctx), peer_ptr);
}

int rpma_peer_delete(struct rpma_peer **peer_ptr) {
    RPMA_REFUSE(peer_ptr == NULL);
    return rpma::api::close_or_keep(__func__, peer_ptr);
}
