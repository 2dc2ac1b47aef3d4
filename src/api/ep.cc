// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026, the librpma developers

// ep.cc -- exports: endpoints

#include "core/ep.hh"
#include "api/getter.hh"
#include "core/conn_req.hh"

using namespace rpma;

int rpma_ep_listen(struct rpma_peer *peer, const char *addr, const char *port,
                   struct rpma_ep **ep_ptr) {
    RPMA_REFUSE(peer == NULL);
    RPMA_REFUSE(addr == NULL);
    RPMA_REFUSE(port == NULL);
    RPMA_REFUSE(ep_ptr == NULL);
    Call call(__func__);
    auto ep = rpma_ep::listen(call, *peer, addr, port);
    if (ep)
        RPMA_LOG(RPMA_LOG_LEVEL_NOTICE, __func__, "listening on %s:%s", addr, port);
    return call.deliver(std::move(ep), ep_ptr);
}

int rpma_ep_shutdown(struct rpma_ep **ep_ptr) {
    RPMA_REFUSE(ep_ptr == NULL);
    return delete_or_keep(__func__, ep_ptr);
}

RPMA_GETTER(rpma_ep_get_fd, rpma_ep, ep, int, fd, ep->fd())

int rpma_ep_next_conn_req(struct rpma_ep *ep, const struct rpma_conn_cfg *cfg,
                          struct rpma_conn_req **req_ptr) {
    RPMA_REFUSE(ep == NULL);
    RPMA_REFUSE(req_ptr == NULL);
    Call call(__func__);
    auto req = ep->next_request(call, or_default(cfg));
    if (req)
        RPMA_LOG(RPMA_LOG_LEVEL_NOTICE, __func__, "a connection request came in");
    return call.deliver(std::move(req), req_ptr);
}
